"""Run folders and data sets of others are data: nothing in them is executed, and no name in them leads out of their folder."""

from __future__ import annotations

import ast
import pickle
import zipfile
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from agentexp.core import Task
from agentexp.errors import UserError
from agentexp.paths import inside

PACKAGE = Path(__file__).resolve().parents[1] / "agentexp"
OUTSIDE = ["../x", "a/../../x", "/etc/passwd", "..", "", "..\\x", "C:\\x", "\\\\host\\share", "a\0b"]

PICKLES = {"envs/worker.py", "envs/process.py", "envs/check.py", "envs/check_play.py"}
"""Between a process and the workers that it started itself, over a socket that nobody else has."""
EXECUTES = {"envs/arc_agi3/sessions.py"}
"""The official games are Python files; the documentation of `env.games` says that they run with the user's rights."""


@pytest.mark.parametrize("name", OUTSIDE)
def test_names_that_lead_out_of_their_folder_are_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(UserError, match="no name of a file inside"):
        inside(tmp_path, name, "The map")


@pytest.mark.parametrize("name", ["a", "a/b.json", "./a", "..a/b..", "a b/c"])
def test_names_inside_stay(tmp_path: Path, name: str) -> None:
    assert inside(tmp_path, name, "The map") == tmp_path / name


def files_of(kind: str, tmp_path: Path) -> tuple[Any, dict[str, Any]]:
    """A world that reads a folder, and a task of it whose file is outside: as a run folder of somebody else could name it."""
    (tmp_path / "data").mkdir()
    (tmp_path / "evil.py").write_text(f"open({str(tmp_path / 'executed')!r}, 'w')\n")
    for name in ("evil.pddl", "evil.z5"):
        (tmp_path / name).write_text("(define (problem x))")
    if kind == "pddl":
        from agentexp.envs.pddl.world import Pddl

        return Pddl(problems=str(tmp_path / "data")), {"domain": "../evil.pddl", "problem": "../evil.pddl"}
    if kind == "jericho":
        from agentexp.envs.jericho.world import Jericho

        return Jericho(games=str(tmp_path / "data")), {"file": "../evil.z5"}
    from agentexp.envs.arc_agi3.world import ArcAgi3

    spec = {"source": "folder", "game": "x", "folder": str(tmp_path), "class": "evil"}
    return ArcAgi3(games=str(tmp_path / "data")), spec


@pytest.mark.parametrize(("kind", "module"), [("pddl", ""), ("jericho", "jericho"), ("arc_agi3", "arcengine")])
def test_a_foreign_task_opens_no_file_outside_the_data(kind: str, module: str, tmp_path: Path) -> None:
    if module and not find_spec(module):
        pytest.skip(f"{module} is not installed")
    world, spec = files_of(kind, tmp_path)
    with pytest.raises(UserError, match="no name of a file inside"):
        world.reset(Task("x", kind, "test", spec=spec))
    assert not (tmp_path / "executed").exists()


class Evil:
    """Unpickling it leaves a trace."""

    def __init__(self, trace: Path) -> None:
        self.trace = trace

    def __reduce__(self) -> Any:
        return (Path.touch, (self.trace,))


def test_model_folders_with_pickles_execute_nothing(tmp_path: Path) -> None:
    """A checkpoint of somebody else, in the old format that is a pickle."""
    torch = pytest.importorskip("torch")
    pytest.importorskip("transformers")
    from agentexp.training.base import ModelBase

    trace, folder = tmp_path / "executed", tmp_path / "model"
    folder.mkdir()
    (folder / "config.json").write_text(
        '{"model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": 8, "intermediate_size": 8,'
        ' "num_hidden_layers": 1, "num_attention_heads": 1, "vocab_size": 8}'
    )
    with zipfile.ZipFile(folder / "pytorch_model.bin", "w") as archive:
        archive.writestr("archive/data.pkl", pickle.dumps(Evil(trace), protocol=2))
        archive.writestr("archive/version", "3\n")
    with pytest.raises(UserError, match="code that would be executed"):
        ModelBase(path=str(folder), device="cpu").load_model()
    assert not trace.exists()
    with pytest.raises(Exception, match=r"(?i)weights.?only"):
        torch.load(folder / "pytorch_model.bin", weights_only=True)


def calls(tree: ast.AST) -> Iterator[tuple[str, ast.Call]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            yield ast.unparse(node.func), node


def true(call: ast.Call, name: str) -> bool:
    return any(keyword.arg == name and getattr(keyword.value, "value", None) is True for keyword in call.keywords)


FORBIDDEN = {"os.system", "os.popen", "subprocess.getoutput", "eval", "yaml.load", "yaml.unsafe_load", "yaml.full_load"}
FORBIDDEN |= {
    "shutil.unpack_archive",
    "marshal.loads",
    "shelve.open",
    "dill.loads",
    "cloudpickle.loads",
    "joblib.load",
    "input",
}


def test_the_code_executes_and_unpacks_nothing_that_it_reads() -> None:
    found = []
    for file in sorted(PACKAGE.rglob("*.py")):
        where = file.relative_to(PACKAGE).as_posix()
        for name, call in calls(ast.parse(file.read_text(encoding="utf-8"))):
            last = name.rpartition(".")[2]
            bad = (
                name in FORBIDDEN
                or (name == "exec" and where not in EXECUTES)
                or (name in ("pickle.load", "pickle.loads", "pickle.Unpickler") and where not in PICKLES)
                or (name == "torch.load" and not true(call, "weights_only"))
                or (name in ("np.load", "numpy.load") and true(call, "allow_pickle"))
                or last in ("extractall", "extract_archive")
                or true(call, "shell")
                or true(call, "trust_remote_code")
            )
            if bad:
                found.append(f"{where}:{call.lineno}: {name}")
    assert found == []


def test_servers_of_our_own_listen_on_this_machine_only() -> None:
    found = []
    for file in sorted([*PACKAGE.rglob("*.py"), *PACKAGE.parent.joinpath("scripts").rglob("*.py")]):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant) and node.value in ("0.0.0.0", "::"):
                found.append(f"{file.name}:{node.lineno}")
            if isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] in (
                "TCPSite",
                "HTTPServer",
                "ThreadingHTTPServer",
            ):
                text = ast.unparse(node)
                if "127.0.0.1" not in text and "host" not in text and "HOST" not in text:
                    found.append(f"{file.name}:{node.lineno}: {text}")
    assert found == []
