"""No key reaches a request's body, the store or any file a run leaves; headers come from the environment."""

from __future__ import annotations

import base64
import json
import logging
import random
import string

import pytest
from judge_server import examiner
from llm_server import LlmServer, Raw
from work import lines_run

from ragnb.cli import main
from ragnb.errors import RagnbError
from ragnb.schema import Profile
from ragnb.schema.secrets import is_secret_name, refuse_secrets, without_secrets
from ragnb.scoring import evaluate
from ragnb.store import Cell, Client, Outcome, Stop, Store, run_cells

pytestmark = pytest.mark.filterwarnings("default::ragnb.errors.RagnbWarning")
KEY, HEADER, SHORT = "sk-canary/5d1f0a77+e8", "gw canary;77=41 x", "c4n4ry"
CASES = [
    {
        "sample_id": n,
        "question": "How long?",
        "answer": f"{n} days.",
        "retrieved_contexts": ["730 days."],
    }
    for n in (1, 2)
]
ORDINARY = [
    {
        "seed": 12345678901234567890,
        "stop": ["###", "<|im_end|>", "\n\nBasic information:"],
        "max_tokens": 900,
    },
    {
        "max_completion_tokens": 5,
        "eos_token": "</s>",
        "stop_token_ids": [1, 2],
        "logit_bias": {"50256": -100},
    },
    {
        "model": "meta-llama/Llama-4-Maverick-17B-128E-Instruct-FP8",
        "skip_special_tokens": True,
        "top_k": 40,
    },
    {
        "models": [
            "anthropic.claude-3-5-sonnet-20241022-v2:0",
            "ft:gpt-4o-mini-2024-07-18:my-org:j:9ABCDEF1",
        ]
    },
    {
        "user": "8f14e45fceea167a5a36dedd4bea2543",
        "prompt_cache_key": "judge-v2",
        "n": 1,
        "token_limit": 7,
    },
    {
        "safety_identifier": "a" * 30 + "0" * 34,
        "metadata": {"key": "value", "run": "2026-11-22T10:54:39Z"},
    },
    {
        "user": "123e4567-e89b-12d3-a456-426614174000",
        "reasoning": {"effort": "low", "budget_tokens": 100},
    },
    {
        "response_format": {
            "type": "json_schema",
            "json_schema": {
                "name": "RagVerdictSchemaVersion2",
                "schema": {
                    "type": "object",
                    "required": ["token", "password"],
                    "properties": {
                        "token": {"type": "string", "pattern": "^sk-[a-z0-9]{20}$"},
                        "password": {"type": "null"},
                    },
                },
            },
        }
    },
    {
        "sort_key": "a",
        "monkey": "b",
        "keywords": ["key"],
        "keep_alive": "5m",
        "tokenizer": "mistral",
    },
    {
        "chat_template_kwargs": {"enable_thinking": False},
        "guided_regex": "[0-9]{1,2}(\\.5)?",
        "bos_token": None,
    },
    {
        "tokens": [1, 2],
        "keyword": "a",
        "max_tokens": 7,
        "frequency_penalty": 0.1,
        "parallel_tool_calls": False,
    },
    {
        "stop": [
            "Token: ",
            "password:",
            "max_tokens=900",
            "key: value",
            "Basic understanding of tokens",
        ]
    },
    {
        "top_logprobs": 5,
        "min_p": 0.1,
        "repetition_penalty": 1,
        "truncate_prompt_tokens": 9,
        "session": "a",
    },
    {"presence_penalty": 1, "service_tier": "auto", "verbosity": "low", "key_tokens": 1},
    {
        "stop": "差旅报销制度第三十二条补充说明",
        "provider": {"order": ["deepinfra/fp8"], "allow_fallbacks": False},
    },
]
NAMES = [
    "api_key",
    "apiKey",
    "API-KEY",
    "x-api-key",
    "openai_api_key",
    "token",
    "access_token",
    "hf_token",
    "authToken",
    "X-Auth-Token",
    "secret",
    "client_secret",
    "aws_secret_access_key",
    "password",
    "db_passwd",
    "passphrase",
    "authorization",
    "Proxy-Authorization",
    "cookie",
    "Set-Cookie",
    "extra_headers",
    "default_headers",
    "headers",
    "Ocp-Apim-Subscription-Key",
    "private_key",
    "credentials",
    "bearer",
    "auth",
    "OPENAI_KEY",
    "x-functions-key",
    "masterKey",
    "jwt",
    "key",
    "Key",
    "KEY",
    "pass",
    "passwd",
    "tokens",
    "密码",
    "口令",
    "令牌",
    "api密钥",
    "signature",
    "sig",
    "session_id",
    "appkey",
    "app_key",
    "basic_auth",
    "connection_string",
    "dsn",
    "userpass",
    "AccessKeyId",
    "ｔｏｋｅｎ",
]
VALUES = [
    "sk-" + "abcdefgh12",
    "sk-proj-" + "A1b2" * 9,
    KEY,
    "Bearer abc.def-123",
    "bearer  x" + "1" * 9,
    "ghp_" + "a1B2" * 9,
    "hf_" + "abcd" * 6,
    "AKIA" + "ABCD1234" * 2,
    "xai-" + "q1W2" * 8,
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.abc",
    "0123456789abcdef" * 2,
    "q7Rk2ZpX9vB4mT6wY1cN8dL3",
    "https://me:pass@host/v1",
    "-----BEGIN RSA PRIVATE KEY-----",
    "api_key=mine4711canary",
    '{"api_key": "mine4711canary"}',
    "https://h/?api_key=mine4711canary",
    "Server=h;Password=mine4711canary",
    "x-api-key: mine4711canary",
    "Token mine4711canary",
    "x: token=mine4711",
    "Basic bWluZTQ3MTFjYW5hcnk",
    "fw_3ZabcdEFGH1234567890",
    "csk-abcdefgh1234567890abcdefgh",
    "tgp_v1_AbCdEfGh1234567890",
    "SG.abcdefgh1234567890",
    "ｓｋ-abcdefgh12345678",
]


@pytest.mark.parametrize("sent", ORDINARY, ids=[next(iter(sent)) for sent in ORDINARY])
def test_ordinary_parameters_are_no_keys(sent):
    refuse_secrets(sent, "--send")
    refuse_secrets({"extra_body": sent}, "--send")
    assert without_secrets(sent) == sent


@pytest.mark.parametrize("name", NAMES)
def test_a_name_of_a_key_is_refused_at_any_depth_without_its_value(name):
    assert is_secret_name(name)
    for sent in ({name: "mine-4711"}, {"extra_body": [{"a": {name: "mine-4711"}}]}):
        with pytest.raises(RagnbError, match="headers_env") as caught:
            refuse_secrets(sent, "--send")
        assert "mine-4711" not in str(caught.value)
        assert "mine-4711" not in json.dumps(without_secrets(sent))


@pytest.mark.parametrize("value", VALUES)
def test_a_value_of_the_form_of_a_key_is_refused_at_any_depth_and_not_repeated(value):
    for sent in (
        {"custom": value},
        {"a": [{"b": f"x {value}"}]},
        {"metadata": {value: 1}} if " " not in value else {},
    ):
        if sent and not (value in sent.get("metadata", {}) and value[:3] in ("012", "q7R")):
            with pytest.raises(RagnbError, match="headers_env") as caught:
                refuse_secrets(sent, "--send")
            assert value[3:] not in str(caught.value)


@pytest.mark.parametrize(
    ("letters", "least"),
    [
        (string.ascii_letters + string.digits, 0.97),
        (string.ascii_lowercase + string.digits, 0.93),
        ("0123456789abcdef", 1),
        (None, 0.9),
    ],
)
def test_random_keys_of_32_characters_are_found(letters, least):
    draw = random.Random(7)

    def key():
        return (
            "".join(draw.choices(letters, k=32))
            if letters
            else base64.b64encode(draw.randbytes(32)).decode()
        )

    found = 0
    for _ in range(500):
        try:
            refuse_secrets({"custom": key()}, "--send")
        except RagnbError:
            found += 1
    assert found / 500 >= least


@pytest.mark.parametrize(
    "text", ["basic " + "g" * 200_000, "token " + "g" * 200_000, "1" * 200_000, "x='" * 60_000]
)
def test_a_long_text_is_looked_through_at_once(text):
    assert without_secrets({"x": text}) == {"x": text}
    short, long = (lines_run(lambda n=n: without_secrets({"x": text[:n]})) for n in (5_000, 10_000))
    assert long <= 2.2 * short + 100


# A gateway's headers


def test_headers_of_a_profile_come_from_the_environment_and_no_placeholder_is_sent_beside_them(
    llm_server, monkeypatch, tmp_path
):
    monkeypatch.setenv("GATEWAY", f"  {HEADER} ")
    monkeypatch.setenv("AUTH", f"Bearer {KEY}")
    for headers, wanted in (
        ({"api-key": "GATEWAY"}, {"api-key": HEADER, "authorization": None}),
        (
            {"authorization": "AUTH", "X-Org": "GATEWAY"},
            {"authorization": f"Bearer {KEY}", "x-org": HEADER},
        ),
    ):
        client = Client(Profile(base_url=llm_server.base_url, model="small", headers_env=headers))
        llm_server.script = lambda request: json.dumps(request.headers)
        said = chat(client, tmp_path)
        assert {name: llm_server.log[-1].headers.get(name) for name in wanted} == wanted
        assert HEADER not in said
        assert KEY not in said
        assert HEADER not in f"{client!r} {vars(client)}"


def chat(client, folder, **parameters):
    """Send one message; return all that is kept of it."""

    async def work(cell):
        return Outcome.of(await client.chat([{"role": "user", "content": "hi"}], **parameters))

    with Store(None) as store:
        run = run_cells(
            [Cell("a", "b", {}, model=str(client.profile.headers_env))],
            work,
            store,
            clients=[client],
        )
        return store.frame(run.id, attempts="all").to_json()


@pytest.mark.parametrize(
    "given",
    [
        *[
            {"base_url": f"https://host{rest}"}
            for rest in (
                "/sk-abcdefgh12345678/v1",
                "/v1;key=mine4711",
                "/key=mine4711",
                "/token=mine",
                "/api_key/mine4711/v1",
                "/accounts/q7Rk2ZpX9vB4mT6wY1cN8dL3",
                "/%73k-abcdefgh12345678",
                "?key=mine4711",
            )
        ],
        {"model": "sk-abcdefgh12345678"},
        {"api_key_env": "AKIAABCD1234ABCD1234"},
        {"sk-abcdefgh12345678": 1},
    ],
)
def test_a_profile_refuses_a_key_wherever_it_stands(given):
    with pytest.raises(ValueError, match="key") as caught:
        Profile(**({"base_url": "http://h/v1", "model": "m"} | given))
    assert not any(
        part in str(caught.value) for part in ("mine4711", "abcdefgh1234", "q7Rk2", "ABCD1234")
    )


@pytest.mark.parametrize(
    "rest",
    [
        "",
        "/v1",
        "/openai/deployments/gpt-4o-2024-08-06",
        "/v1/projects/p-12345/locations/us-central1/openapi",
        "/compatible-mode/v1",
        "/api/paas/v4",
        "/auth/openai-v1",
        "/token/v1",
        "/v1beta/openai/",
    ],
)
def test_an_ordinary_address_is_taken(rest):
    assert Profile(base_url=f"https://host{rest}", model="org/model-7b").base_url.endswith(rest)


@pytest.mark.parametrize("option", ["--temperature", "--peek", "--repeats"])
def test_a_key_in_the_place_of_another_value_is_not_repeated(folder, llm_server, capsys, option):
    assert main(["judge", str(scenario(folder, llm_server)), option, "sk-abcdefgh12345678"]) == 2
    assert "sk-abc" not in capsys.readouterr().err


@pytest.mark.parametrize(
    ("headers", "words"),
    [
        ({"api-key": "sk-" + "a1" * 9}, "variable's name"),
        ({"api key": "NAME"}, "an invalid header name"),
        ({"Api-Key": "A", "api-key": "B"}, "appears twice"),
        ({"Content-Type": "A"}, "sent by ragnb itself"),
    ],
)
def test_a_profile_refuses_headers_that_are_values_or_no_headers(headers, words):
    with pytest.raises(ValueError, match=words) as caught:
        Profile(base_url="http://127.0.0.1:1/v1", model="small", headers_env=headers)
    assert "a1a1" not in str(caught.value)


def test_a_header_whose_variable_is_missing_or_no_header_is_refused_before_anything_is_sent(
    folder, llm_server, monkeypatch, capsys
):
    path = scenario(folder, llm_server)
    monkeypatch.delenv("GATEWAY")
    for command in ("judge", "evaluate"):
        assert main([command, str(path)]) == 2
        assert (
            "headers_env.api-key='GATEWAY': this environment variable is not set"
            in capsys.readouterr().err
        )
        monkeypatch.setenv("GATEWAY", "two\nlines")
        assert main([command, str(path)]) == 2
        said = capsys.readouterr().err
        assert "which a header cannot" in said
        assert "two" not in said
        monkeypatch.delenv("GATEWAY")
    assert not llm_server.log
    assert not (folder / "reports").exists()


# What is sent


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("THE_KEY", KEY)
    monkeypatch.setenv("GATEWAY", HEADER)
    monkeypatch.setenv("SHORT", SHORT)
    (tmp_path / "cases.jsonl").write_text(
        "".join(json.dumps(case) + "\n" for case in CASES), encoding="utf-8"
    )
    return tmp_path


def scenario(folder, server, extra=""):
    path = folder / "mine.yaml"
    headers = "headers_env: {api-key: GATEWAY, x-org: SHORT}"
    judge = f"  judge: {{base_url: '{server.base_url}', model: small, api_key_env: THE_KEY, {headers}}}\n"
    path.write_text(
        f"cases: cases.jsonl\nname: mine\nllm_profiles:\n{judge}{extra}", encoding="utf-8"
    )
    return path


@pytest.mark.parametrize(
    "sent",
    [
        f"api_key={KEY}",
        "api_key=mine-4711",
        "extra_headers={X-Org: mine-4711}",
        f"user=Bearer {KEY}",
        "extra_body={a: [{client_secret: mine-4711}]}",
        f"{KEY}=1",
        KEY,
    ],
)
def test_a_key_among_what_is_sent_is_refused_before_anything_is_sent_or_written(
    folder, llm_server, capsys, sent
):
    path = scenario(folder, llm_server)
    for more in ([], ["--dry-run"]):
        assert main(["judge", str(path), "--send", sent, *more]) == 2
        said = capsys.readouterr()
        assert "--send" in said.err
        assert ("headers_env" in said.err) == ("=" in sent)
        assert "mine-4711" not in said.err
        assert KEY not in said.err
    assert not llm_server.log
    assert not (folder / "reports").exists()


def test_a_key_among_the_parameters_of_a_call_is_refused_by_every_way_to_it(llm_server, tmp_path):
    client = Client(Profile(base_url=llm_server.base_url, model="small"))
    with pytest.raises(RagnbError, match="parameters api_key: this looks like a key"):
        _ = Cell("a", "b", {}, parameters={"api_key": "mine"}).key
    with pytest.raises(RagnbError, match=r"parameters extra_body.token"):
        evaluate(
            CASES,
            metrics=["faithfulness"],
            client=client,
            parameters={"extra_body": {"token": "mine"}},
        )
    for sent in (
        {"extra_body": {"api_key": "mine"}},
        {"extra_headers": {"api-key": "mine"}},
        {"user": KEY},
    ):
        with pytest.raises(Stop, match="headers_env"):
            chat(client, tmp_path, **sent)
    assert not llm_server.log
    with Store(tmp_path / "a.sqlite") as store:
        store.plan([], about={"headers": {"x": "mine-4711"}})
    assert "mine-4711" not in leaves(tmp_path)


# The canary


def leaves(folder):
    """Every byte that a run has left, as text."""
    return "".join(
        path.read_bytes().decode("utf-8", "replace") for path in folder.rglob("*") if path.is_file()
    )


def test_no_byte_below_reports_holds_a_key_or_a_header(folder, llm_server, capsys, caplog):
    """Runs whose endpoint echoes the key in a verdict, in a refusal and in a fault; the store is still open."""
    caplog.set_level(logging.DEBUG)
    path = scenario(folder, llm_server, "metrics: [context_relevance]\n")

    def echoing(request):
        return examiner(request).replace("by rule", f"by rule {KEY} {HEADER} {SHORT}")

    def refusing(request):
        return Raw(
            401, json.dumps({"error": {"message": f"bad headers {request.headers}, {KEY[:12]}***"}})
        )

    def vague(request):
        return Raw(400, f"no: {json.dumps(request.headers)}")

    wanted = {"judge": (0, 2, 1), "evaluate": (1, 2, 1)}
    for command, codes in wanted.items():
        for script, code in zip((echoing, refusing, vague), codes, strict=True):
            llm_server.script = script
            store = folder / "reports" / f"{command}-{script.__name__}.sqlite"
            with Store(store) as held:  # so that the -wal file is there to be read
                words = [command, str(path), "--store", str(store), "--concurrency", "1"]
                assert main(words) == code
                assert len(held.runs())
                assert (folder / "reports" / f"{store.name}-wal").stat().st_size
                said = [leaves(folder / "reports"), caplog.text, *capsys.readouterr()]
            said.append(leaves(folder / "reports"))
            for text in said:
                for canary in (KEY, KEY[3:12], HEADER, json.dumps(HEADER), "gw canary", SHORT):
                    assert canary not in text, (command, script.__name__)
    assert llm_server.log[0].headers["api-key"] == HEADER
    assert llm_server.log[0].headers["x-org"] == SHORT
    assert llm_server.log[0].headers["authorization"] == f"Bearer {KEY}"


def test_the_snapshot_of_a_scenario_names_the_variables(folder, llm_server):
    llm_server.script = examiner
    assert main(["judge", str(scenario(folder, llm_server))]) == 0
    text = (folder / "reports" / "mine" / "judged.snapshot.yaml").read_text(encoding="utf-8")
    assert "api-key" in text
    assert "GATEWAY" in text


def test_a_key_in_a_reply_leaves_numbers_whole(llm_server, tmp_path, monkeypatch):
    monkeypatch.setenv("GATEWAY", "7")
    client = Client(
        Profile(base_url=llm_server.base_url, model="small", headers_env={"x": "GATEWAY"})
    )

    async def work(cell):
        await client.chat([{"role": "user", "content": "hi"}])
        return Outcome.of({"score": 7, "said": "7 of 77", "7": [7.5]})

    with Store(None) as store, LlmServer():
        value = run_cells([Cell("a", "b", {})], work, store, clients=[client]).frame["value"][0]
    assert value == {"score": 7, "said": "[key] of 77", "[key]": [7.5]}
