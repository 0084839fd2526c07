// The search of the site. Sphinx finds the pages that have every word typed, and ranks a page by its best one; a
// question in words of its own then finds nothing, or a page that lists everything. Here sections are ranked, by how
// often they have the words and how rare those are (BM25, Robertson & Zaragoza 2009), and a page by its best section.

// Which page comes first where several answer: one that explains before one that lists.
const PAGES_FIRST = [
  [/^(guides|with)\/index$|^generated\/reference\/(index|api\/index|frames|commands)$/, 0.6],
  [/^generated\/reference\/api\/[a-z]+$|^index$/, 0.7],
  [/^(tour|benchmarks|claims|migrating|decisions|embedded)$/, 0.85],
  [/^generated\//, 0.9],
  [/^(guides|with)\//, 1.3],
  [/^(install|safety|statistics|scale|tools)$/, 1.2],
];
const SATURATION = 1.2; // k1: a word that is there ten times tells little more than three times
const LENGTH = 0.4; // b: how much the length of a section is taken into account
const OF_PAGE = 0.25; // what the rest of the page adds to its best section
const PART_OF_WORD = 0.5;

const priority = (page) => PAGES_FIRST.find(([pattern]) => pattern.test(page))?.[1] ?? 1;

// The values are those of Sphinx, for titles, index entries and names of functions.
var Scorer = {
  score: ([page, title, anchor, description, score]) => score * priority(page),
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};

// How often each section, or page, has a word; where none has it whole, the words that it begins.
const countsOf = (word, groupOf) => {
  const known = Object.hasOwn(SECTIONS.terms, word);
  const words = known || word.length < 4 ? [word] : Object.keys(SECTIONS.terms).filter((term) => term.startsWith(word));
  const found = new Map();
  words.forEach((term) => {
    const pairs = SECTIONS.terms[term] ?? [];
    for (let k = 0; k < pairs.length; k += 2) {
      const group = groupOf(pairs[k]);
      found.set(group, (found.get(group) ?? 0) + pairs[k + 1] * (known ? 1 : PART_OF_WORD));
    }
  });
  return found;
};

const lengths = (groupOf) => {
  const found = new Map(SECTIONS.sections.map((_, section) => [groupOf(section), 0]));
  Object.values(SECTIONS.terms).forEach((pairs) => {
    for (let k = 0; k < pairs.length; k += 2)
      found.set(groupOf(pairs[k]), found.get(groupOf(pairs[k])) + pairs[k + 1]);
  });
  return found;
};

const bm25 = (words, groupOf) => {
  const length = lengths(groupOf);
  const usual = [...length.values()].reduce((sum, one) => sum + one, 0) / length.size;
  const scores = new Map();
  words.forEach((word) => {
    const counts = countsOf(word, groupOf);
    const rarity = Math.log(1 + (length.size - counts.size + 0.5) / (counts.size + 0.5));
    counts.forEach((n, group) => {
      const long = SATURATION * (1 - LENGTH + (LENGTH * length.get(group)) / usual);
      scores.set(group, (scores.get(group) ?? 0) + (rarity * n * (SATURATION + 1)) / (n + long));
    });
  });
  return scores;
};

const ranked = (words, excluded) => {
  const { docnames, filenames, titles } = Search._index;
  const pageOf = (section) => SECTIONS.sections[section][0];
  const ofPages = bm25(words, pageOf);
  const unwanted = new Set([...excluded].flatMap((word) => [...countsOf(word, pageOf).keys()]));
  const best = new Map();
  bm25(words, (section) => section).forEach((score, section) => {
    const page = pageOf(section);
    if (score > (best.get(page)?.score ?? 0)) best.set(page, { score, section });
  });
  return [...best]
    .filter(([page]) => !unwanted.has(page))
    .map(([page, { score, section }]) => {
      const file = docnames.indexOf(page);
      const [, anchor, heading] = SECTIONS.sections[section];
      const isTop = heading === titles[file];
      return [
        page,
        isTop ? heading : `${titles[file]} > ${heading}`,
        isTop ? "" : `#${anchor}`,
        null,
        score + OF_PAGE * ofPages.get(page),
        filenames[file],
        SearchResultKind.text,
      ];
    });
};

// This is loaded behind Sphinx's script, which is on the page of the search alone.
if (typeof Search !== "undefined") Search.performTermsSearch = ranked;
