"""Later jobs of a sweep follow from whole rounds of earlier ones, the same for whoever decides and however often."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from robo_rl.learn.runs.folder import Run
from robo_rl.sweeps import mbtl, population, space
from robo_rl.sweeps.rounds import Outcome, Round, rounds
from robo_rl.sweeps.sweep import Job, read
from robo_rl.sweeps.sweep_file import Description, read_description

HEAD = 'task = "quadrotor-hover"\n'
SPACE = """
[space]
"apg.learning-rate" = { low = 0.001, high = 0.1, log = true }
"apg.horizon" = { low = 8, high = 64 }
"""
POPULATION = '[population]\nmembers = 8\ngenerations = 3\nmeasure = "position_error_mean_m"\nlower_is_better = true\n'


def described(folder: Path, text: str) -> Description:
    file = folder / "sweep.toml"
    file.write_text(text)
    return read_description(file)


def trained(folder: Path, job: Job, result: dict, rewards: list[float]) -> None:
    """A run as a training leaves it, whose result follows from its settings."""
    if (folder / job.name).exists():
        return
    floors = dict(pair.split(":") for pair in job.options.get("stop-below", []))
    stop_below = {update: float(floor) for update, floor in floors.items()}
    shape = {"hidden": [8], "activation": "tanh"}
    run = Run.create(folder, job.task, None, "apg", job.seed, shape, name=job.name, stop_below=stop_below)
    lines = []
    for update, reward in enumerate(rewards, 1):
        lines.append({"update": update, "environment_steps": update, "reward": reward})
        if reward < stop_below.get(str(update), -np.inf):
            result = {**result, "stopped_at": update}
            break
    (run.folder / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    run.done_file.write_text(json.dumps({**result, "configuration_digest": run.configuration_digest}))


def carried_out(description: Description, folder: Path, train: Callable[[Round, Job], None]) -> tuple[int, Outcome]:
    """The number of jobs done, and what was found."""
    most, parts = rounds(description, folder)
    count = 0
    while True:
        try:
            part = next(parts)
        except StopIteration as end:
            assert count <= most
            return count, end.value
        for index in part.indices:
            train(part, part.jobs[index])
            count += 1


def distance(job: Job) -> float:
    """Of the learning rate from 0.01, in powers of ten: an error that has a best setting."""
    return abs(np.log10(float(job.options["apg.learning-rate"][0])) + 2)


def by_distance(part: Round, job: Job) -> None:
    error = distance(job)
    trained(part.folder, job, {"position_error_mean_m": error, "success": 1 - error}, [1 - error] * 20)


# --- spaces ----------------------------------------------------------------------------------------------------------

numbers = st.floats(1e-6, 1e6) | st.integers(1, 10**6)
ranges = st.tuples(numbers, numbers, st.booleans()).filter(lambda x: x[0] < x[1])


@given(ranges, st.integers(0, 2**32))
def test_what_is_drawn_and_perturbed_is_in_the_range(told: tuple, seed: int) -> None:
    low, high, log = told
    dimension = space.Range(low, high, log, type(low) is int and type(high) is int)
    generator = np.random.default_rng(seed)
    x = dimension.draw(generator)
    for _ in range(10):
        assert low <= x <= high
        assert not dimension.whole or isinstance(x, int)
        x = dimension.perturbed(x, generator)


def test_an_integer_is_perturbed_by_one_at_least() -> None:
    small = space.Range(1, 4, False, True)
    near = {small.perturbed(2, np.random.default_rng(seed)) for seed in range(20)}
    assert near == {1, 3}


def test_logarithms_are_drawn_equally_likely() -> None:
    drawn = [space.Range(0.001, 10.0, True, False).draw(np.random.default_rng(seed)) for seed in range(2000)]
    assert np.mean(np.array(drawn) < 0.1) == pytest.approx(0.5, abs=0.04)  # 3.6 standard deviations


values = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5)
strange = st.recursive(
    values, lambda x: st.lists(x, max_size=3) | st.dictionaries(st.text(max_size=5), x, max_size=3), max_leaves=8
)
names = st.sampled_from(
    ["low", "high", "log", "members", "generations", "trials", "batch", "prune", "measure", "block"]
)
tables = st.dictionaries(
    st.sampled_from(["apg.learning-rate", "seed", "--x", ""]), strange | st.dictionaries(names, strange)
)


@given(tables, st.dictionaries(names, strange), st.sampled_from(["search", "population", "stop", "contexts"]))
def test_strange_spaces_and_strategies_are_refused_in_a_sentence(known: dict, told: dict, strategy: str) -> None:
    fixed: list[dict[str, list[str]]] = [{"apg.betas": ["0"]}, {"apg.betas": ["1"]}]
    chosen = fixed if strategy == "stop" else fixed[:1]
    description = Description(
        Path("x.toml"), ["quadrotor-hover"], [None], [0], chosen, {"space": known, strategy: told}
    )
    refused = ""
    try:
        rounds(description, Path("nowhere"))
    except ValueError as error:
        refused = str(error)
    assert not refused or "; expected" in refused


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (HEAD + "[population]", r"expected \[space\] with \[search\] or \[population\]"),
        (HEAD + SPACE, r"expected \[space\] with \[search\] or \[population\]"),
        (HEAD + SPACE + "[search]\n[population]", "expected one of"),
        (HEAD + SPACE + '[search]\n[vary]\n"apg.betas" = [[0, 0]]', r"expected none beside \[space\]"),
        (HEAD + SPACE + "[population]\nmembers = 3", "population.members is 3; expected an integer from 4"),
        (HEAD + SPACE + "[population]\nmembers = true", "population.members is True; expected an integer from 4"),
        (HEAD + "seeds = 2\n" + SPACE + "[population]", r"\[population\] has one"),
        (HEAD + '[space]\n"apg.hidden" = [[8], [9]]\n[population]', "no shape of networks"),
        (HEAD + '[space]\n"apg.updates" = [8, 9]\n[search]\nprune = 0.5', "the same updates for all"),
        (HEAD + '[space]\n"apg.updates" = {low = 3, high = 2}\n[search]', "the lower one first"),
        (HEAD + '[space]\n"apg.updates" = {low = 0, high = 2, log = true}\n[search]', "only of positive ones"),
        (HEAD + "seeds = 10\n[vary]\nepisodes = [1, 2]\n[stop]\nblock = 4", "one to 20 times stop.block, 4"),
        (HEAD + "seeds = 10\n[stop]", "settings is 1; expected 2 to 10 to compare"),
    ],
)
def test_a_strategy_that_can_not_be_is_refused_by_field(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        rounds(described(tmp_path, text), tmp_path / "out")


# --- populations -----------------------------------------------------------------------------------------------------


@given(st.lists(st.floats(0, 1), min_size=4, max_size=40), st.integers(0, 2**20), st.integers(1, 50))
def test_only_the_worst_quarter_goes_on_from_others_and_from_the_best_quarter(
    scores: list[float], seed: int, generation: int
) -> None:
    known = {"apg.learning-rate": space.Range(0.001, 0.1, True, False)}
    before = [population.first(known, seed, member) for member in range(len(scores))]
    after = population.offspring(known, before, scores, seed, generation)
    quarter = len(scores) // 4
    moved = [member for member, one in enumerate(after) if one.parent != member]
    assert len(moved) == quarter
    for member, one in enumerate(after):
        if member in moved:
            assert sum(score > scores[one.parent] for score in scores) < quarter
            assert sum(score < scores[member] for score in scores) < quarter
        else:
            assert one.settings == before[member].settings
    assert len({one.seed for one in (*before, *after)}) == 2 * len(scores)


def test_members_begin_from_runs_of_the_generation_before(tmp_path: Path) -> None:
    count, outcome = carried_out(described(tmp_path, HEAD + SPACE + POPULATION), tmp_path / "out", by_distance)
    assert count == 24
    jobs = json.loads((tmp_path / "out/generation-1/sweep.json").read_text())["jobs"]
    names = {json.loads(path.read_text())["seed"]: path.parent.name
             for path in (tmp_path / "out/generation-0").glob("*/run.json")}  # fmt: skip
    assert {Path(job["origin"]).name for job in jobs} < set(names.values())
    assert all((tmp_path / "out/generation-1" / job["origin"]).resolve().is_dir() for job in jobs)
    assert [job.origin for job in read(tmp_path / "out/generation-1")] == [job["origin"] for job in jobs]
    errors = [min(m["position_error_mean_m"] for m in one["members"]) for one in outcome.found["generations"]]
    assert errors[2] <= errors[1] <= errors[0]


@pytest.mark.slow
@pytest.mark.release
def test_a_population_is_the_same_for_one_and_two_processes_and_after_a_kill(tmp_path: Path) -> None:
    told = '[options]\nepisodes = 20\ncheckpoint-seconds = 0.1\n"apg.updates" = 4\n"apg.environments" = 16\n'
    (tmp_path / "few.toml").write_text(HEAD + told + SPACE + "[population]\nmembers = 4\ngenerations = 2\n")

    def sweep(slots: int) -> subprocess.Popen[bytes]:
        words = ["sweep", str(tmp_path / "few.toml"), "--slots", str(slots), "--out", str(tmp_path / str(slots))]
        return subprocess.Popen([sys.executable, "-m", "robo_rl", *words], stdout=subprocess.DEVNULL)

    driver = sweep(2)
    while driver.poll() is None and not list(tmp_path.glob("2/generation-1/*/run.json")):
        time.sleep(0.05)
    driver.send_signal(signal.SIGKILL)
    driver.wait()
    found = []
    for slots in (2, 1):
        assert sweep(slots).wait() == 0
        files = sorted(tmp_path.glob(f"{slots}/*/*/done.json"))
        found.append({path.parent.name: json.loads(path.read_text())["policy_digest"] for path in files})
    assert len(set(found[0].values())) == 8
    assert found[0] == found[1]


# --- search ----------------------------------------------------------------------------------------------------------


def searched(folder: Path, more: str, name: str = "out") -> tuple[int, Outcome]:
    told = 'measure = "position_error_mean_m"\nlower_is_better = true\n'
    return carried_out(described(folder, HEAD + SPACE + "[search]\n" + told + more), folder / name, by_distance)


def test_a_search_comes_nearer_to_the_best_setting_than_its_first_batch(tmp_path: Path) -> None:
    count, outcome = searched(tmp_path, "trials = 40\nbatch = 10\n")
    assert count == 40
    errors = [one["position_error_mean_m"] for one in outcome.found["trials"]]
    assert outcome.found["best"]["position_error_mean_m"] == min(errors) < min(errors[:10])
    assert np.mean(errors[20:]) < 0.8 * np.mean(errors[:10])


def test_a_search_that_begins_again_finds_its_jobs_and_chooses_the_same(tmp_path: Path) -> None:
    _, first = searched(tmp_path, "trials = 12\nbatch = 4\n")
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("done.json")}
    _, again = searched(tmp_path, "trials = 12\nbatch = 4\n")
    assert first == again
    assert before == {path: path.stat().st_mtime_ns for path in tmp_path.rglob("done.json")}


def test_trainings_below_the_median_of_earlier_batches_are_ended_at_a_quarter(tmp_path: Path) -> None:
    _, outcome = searched(tmp_path, "trials = 20\nbatch = 10\nprune = 0.5\n")
    first, later = outcome.found["trials"][:10], outcome.found["trials"][10:]
    assert {one["state"] for one in first} == {"complete"}
    middle = np.median([one["position_error_mean_m"] for one in first])
    for one in later:
        assert one["state"] == ("pruned" if one["position_error_mean_m"] > middle else "complete")
    assert outcome.found["best"]["state"] == "complete"


def test_a_search_does_not_look_again_where_trainings_were_ended(tmp_path: Path) -> None:
    _, outcome = searched(tmp_path, "trials = 60\nbatch = 10\nprune = 0.5\n")
    states = [one["state"] for one in outcome.found["trials"]]
    assert states[10:30].count("pruned") > states[40:].count("pruned")


def test_a_trial_whose_training_was_refused_is_told_as_failed(tmp_path: Path) -> None:
    description = described(tmp_path, HEAD + SPACE + "[search]\ntrials = 4\nbatch = 2\n")

    def train(part: Round, job: Job) -> None:
        if job != part.jobs[0]:
            by_distance(part, job)

    _, outcome = carried_out(description, tmp_path / "out", train)
    assert [one["state"] for one in outcome.found["trials"]] == ["failed", "complete"] * 2


# --- sequential tests ------------------------------------------------------------------------------------------------

STOP = HEAD + 'seeds = 30\n[vary]\n"apg.learning-rate" = [0.001, 0.01, 0.012]\n[stop]\nmeasure = "success"\n'


def noisy(part: Round, job: Job) -> None:
    rate = job.options["apg.learning-rate"][0]
    noise = float(np.random.default_rng([job.seed, int(float(rate) * 1e6)]).normal()) * 0.1
    trained(part.folder, job, {"success": float(np.clip((0.2 if rate == "0.001" else 0.8) + noise, 0, 1))}, [])


def test_settings_that_differ_are_told_apart_and_trained_no_further(tmp_path: Path) -> None:
    count, outcome = carried_out(described(tmp_path, STOP), tmp_path / "out", noisy)
    said = [one["decision"] for one in outcome.found["decisions"]]
    assert said == ["worse than", "worse than", "not told apart from"]
    assert outcome.found["seeds"]["apg.learning-rate 0.001"] <= 10
    assert outcome.found["seeds"]["apg.learning-rate 0.01"] == 30
    assert count == outcome.found["trainings"] == sum(outcome.found["seeds"].values()) <= 70
    assert len(list((tmp_path / "out").glob("*/done.json"))) == count


# --- contexts --------------------------------------------------------------------------------------------------------

CONTEXTS = HEAD + 'seeds = 2\n[contexts]\nrange = "delay"\nlow = 0.0\nhigh = 0.06\ncount = 7\n'


def near(part: Round, job: Job) -> None:
    """A policy that serves contexts within 30 ms of its own, the less the farther."""
    own = float(job.options["bounds"][0].split(":")[1])
    values = np.linspace(0.0, 0.06, 7)
    trained(part.folder, job, {"policy_digest": job.name}, [])
    asked = {"range": "delay", "values": values.tolist(), "episodes": 200, "policy": job.name}
    success = np.maximum(0.0, 1 - np.abs(values - own) / 0.03)
    (part.folder / job.name / "contexts.json").write_text(json.dumps({"asked": asked, "success": success.tolist()}))


def test_contexts_are_trained_from_the_middle_outwards_until_all_are_served(tmp_path: Path) -> None:
    count, outcome = carried_out(described(tmp_path, CONTEXTS + "trainings = 3"), tmp_path / "out", near)
    assert count == 6
    for seed, chosen in outcome.found["trained"].items():
        assert chosen[0] == 3
        assert {*chosen[1:]} == {1, 5}
        curve = outcome.found["curves"][seed]
        assert curve == sorted(curve)
    whole = carried_out(described(tmp_path, CONTEXTS + 'choose = "all"'), tmp_path / "all", near)[1]
    assert all(curve[-1] == pytest.approx(1.0) for curve in whole.found["curves"].values())


def test_a_damaged_table_of_scores_is_refused(tmp_path: Path) -> None:
    description = described(tmp_path, CONTEXTS + "trainings = 1")
    carried_out(description, tmp_path / "out", near)
    for file in tmp_path.glob("out/*/*/contexts.json"):
        file.write_text("{")
    with pytest.raises(ValueError, match=r"contexts\.json: not JSON"):
        carried_out(description, tmp_path / "out", lambda part, job: None)


@given(st.integers(2, 12), st.integers(0, 2**32))
def test_no_context_is_chosen_twice_and_the_best_is_never_lost(n: int, seed: int) -> None:
    table = np.random.default_rng(seed).uniform(size=(n, n))
    chosen: list[int] = []
    for _ in range(n):
        chosen.append(mbtl.choose(np.linspace(0.0, 1.0, n), chosen, table[chosen]))
    assert sorted(chosen) == list(range(n))


def test_a_gaussian_process_passes_by_its_values_and_knows_nothing_far_away() -> None:
    at, values = np.array([0.0, 0.05, 0.1]), np.array([0.2, 0.5, 0.8])
    mean, deviation = mbtl.posterior(np.array([*at, 10.0]), at, values)
    np.testing.assert_allclose(mean[:3], values, atol=0.05)
    assert (deviation[:3] < 2 * mbtl.NOISE).all()
    assert mean[3] == pytest.approx(0.5)
    assert deviation[3] in mbtl.AMPLITUDES


def test_equidistant_contexts_are_in_the_middles_of_equal_parts() -> None:
    assert [mbtl.equidistant(12, count) for count in (1, 2, 3)] == [[6], [3, 9], [2, 6, 10]]
    assert mbtl.equidistant(5, 5) == list(range(5))


@pytest.mark.slow
def test_policies_of_contexts_are_scored_in_all_of_them(tmp_path: Path) -> None:
    few = '[options]\nepisodes = 4\n"apg.updates" = 2\n"apg.environments" = 16\n'
    told = '[contexts]\nrange = "delay"\nlow = 0\nhigh = 0.02\ncount = 3\ntrainings = 1\nepisodes = 5\n'
    (tmp_path / "few.toml").write_text(HEAD + few + told)
    words = ["sweep", str(tmp_path / "few.toml"), "--out", str(tmp_path / "out"), "--json"]
    done = subprocess.run([sys.executable, "-m", "robo_rl", *words], capture_output=True, text=True, check=True)
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["trained"] == {"0": [1]}
    assert np.shape(found["scores"]["0"]) == (1, 3)
    (run,) = (Run.open(path.parent) for path in tmp_path.glob("out/*/*/run.json"))
    assert run.ranges == {"delay": [0.01, 0.01]}
