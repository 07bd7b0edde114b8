"""The text: which documents are used for what, and how they become tokens."""

import numpy as np
import pytest

from lab.errors import UserError
from text.config import DataOptions
from text.sources import ROLES, Windows, corpus, documents
from text.vocabulary import SEPARATOR, BytePairs, Bytes


def small(texts, **options):
    return DataOptions(data=texts, context=16, **options)


def test_training_validation_and_test_share_no_document(texts):
    roles = [{each.name for each in documents(texts) if each.role == role} for role in ROLES]
    assert sum(map(len, roles)) == len(set.union(*roles)) == 120
    assert all(roles)


def test_a_document_keeps_its_role_when_others_come_and_go(texts, tmp_path):
    before = {each.name: each.role for each in documents(texts)}
    for path in list(texts.iterdir())[::3]:
        (tmp_path / path.name).write_text(path.read_text())
    (tmp_path / "new.txt").write_text("new")
    after = {each.name: each.role for each in documents(tmp_path)}
    assert after.pop("new.txt") in ROLES
    assert len(after) == 40
    assert all(before[name] == role for name, role in after.items())


def test_the_standard_library_is_there_without_tests_and_foreign_packages():
    found = documents(None)
    names = [each.name for each in found]
    assert {"argparse.py", "json/decoder.py", "asyncio/tasks.py"} <= set(names)
    assert not [name for name in names if "site-packages" in name or "test" in name.split("/")]
    size = sum(len(each.text) for each in found)
    assert size > 5e6
    held_out = sum(len(each.text) for each in found if each.role in ("validation", "test"))
    assert 0.04 < held_out / size < 0.2


def test_a_single_file_is_cut_by_position_and_loses_nothing(tmp_path):
    path = tmp_path / "one.txt"
    text = "".join(f"Zeile {number}, schön\n" for number in range(5000))
    path.write_text(text)
    found = documents(path)
    assert "".join(each.text for each in found) == text
    assert [each.place for each in found] == sorted(each.place for each in found)
    test = sum(len(each.text) for each in found if each.role == "test")
    assert test / len(text) == pytest.approx(0.05, abs=0.01)


@pytest.mark.parametrize("vocabulary", ["bytes", "bpe"])
def test_tokens_hold_every_document_of_their_role_and_a_separator_after_each(texts, workplace, vocabulary):
    pytest.importorskip("tokenizers")
    text = corpus(small(texts, vocabulary=vocabulary, vocabulary_size=300))
    expected = [each.text for each in documents(texts) if each.role == "validation"]
    tokens = text.tokens["validation"]
    pieces = np.split(tokens, np.flatnonzero(tokens == SEPARATOR) + 1)
    assert [text.vocabulary.decode(piece[:-1].tolist()) for piece in pieces if len(piece)] == expected
    num_bytes = sum(len(each.encode()) + 1 for each in expected)
    assert text.bytes_per_token["validation"] * len(tokens) == pytest.approx(num_bytes)
    assert (vocabulary == "bytes") == (text.bytes_per_token["validation"] == 1)


def test_tokens_are_kept_and_tell_content_apart(texts, workplace, tmp_path_factory):
    first, again = corpus(small(texts)), corpus(small(texts))
    assert first.description == again.description
    assert first.description["origin"] == "own text"
    assert len(list((workplace / "datasets" / "text").glob("*.npz"))) == 1
    changed = tmp_path_factory.mktemp("changed")
    for path in texts.iterdir():
        (changed / path.name).write_text(path.read_text().replace("times", "mal"))
    assert corpus(small(changed)).description["fingerprint"] != first.description["fingerprint"]


def test_kept_tokens_that_are_no_row_are_refused(texts, workplace):
    corpus(small(texts))
    (path,) = (workplace / "datasets" / "text").glob("*.npz")
    with np.load(path) as file:
        np.savez(path, **dict(file) | {"test": np.uint16(3)})
    with pytest.raises(UserError, match=rf"{path.name}.*delete it and it is made again"):
        corpus(small(texts))


def test_windows_cover_the_tokens_and_overlap_in_one():
    windows = Windows(np.arange(100, dtype=np.uint16), context=9)
    assert len(windows) == 11
    assert windows[0][0].tolist() == list(range(10))
    assert windows[10][0][0] == windows[9][0][-1] == 90
    assert windows[10][1] == 10


def test_the_halves_of_the_training_documents_make_up_all_of_them(texts, workplace):
    text = corpus(small(texts))
    halves = [text.training(part, 16).tokens for part in ("first", "second")]
    assert np.array_equal(np.concatenate(halves), text.training("all", 16).tokens)
    assert min(map(len, halves)) > 1000


def test_held_out_windows_are_spread_over_the_documents(texts, workplace):
    text = corpus(small(texts))
    chosen = text.held_out("test", 16, 5)
    assert len(chosen) == 5
    numbers = [number for _, number in chosen]
    assert numbers[0] == 0
    assert numbers[-1] == len(Windows(text.tokens["test"], 16)) - 1


def test_unusable_texts_are_answered_with_a_sentence(tmp_path, workplace):
    with pytest.raises(UserError, match="no such file or folder"):
        corpus(DataOptions(data=tmp_path / "absent"))
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "picture").write_bytes(b"\xff\x00\xfe")
    with pytest.raises(UserError, match="no text files"):
        corpus(DataOptions(data=tmp_path / "folder"))
    (tmp_path / "short").write_text("short\n")
    with pytest.raises(UserError, match="too few for a sequence"):
        corpus(DataOptions(data=tmp_path / "short"))


def test_vocabularies_give_back_what_they_were_given():
    pytest.importorskip("tokenizers")
    text = "def f(x):\n    return x  # naïve ✓\n"
    pairs = BytePairs.learned([text * 3], 300)
    for vocabulary in (Bytes(), pairs, BytePairs(pairs.header())):
        tokens = vocabulary.encode(text)
        assert vocabulary.decode(tokens.tolist()) == text
        assert tokens.max() < vocabulary.size
    assert len(pairs.encode(text)) < len(text.encode())
