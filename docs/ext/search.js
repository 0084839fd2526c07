// Which page comes first where several hold the word: one that answers before one that lists everything.
// Sphinx itself would sort pages of an equal score by their title. The other values are those of Sphinx.
const PAGES_FIRST = [
  [/^guides\/index$/, 0],
  [/^guides\//, 4],
  [/^with\//, 3],
  [/^(install|safety|statistics|scale|tools)$/, 3],
  [/^generated\/catalogue\//, 2],
  [/^(tour|benchmarks|claims|migrating)$/, -3],
];

var Scorer = {
  score: ([page, title, anchor, description, score]) =>
    score + (PAGES_FIRST.find(([pattern]) => pattern.test(page))?.[1] ?? 0),
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
