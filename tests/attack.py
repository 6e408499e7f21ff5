"""Attacks the instrument for minutes and prints a table of what came out: `make attack`.

usage: python3 tests/attack.py ASSAY [--only NAME,...] [--tries FACTOR] [--seed N]

Kills in the middle of writing, broken files, full disks, closed pipes, Ctrl-C, two writers, a model that
shrinks, planted slowdowns, and the same code compared with itself: interleaved, run by run, and with
several runs per side. Not a part of `make test`: it takes minutes, and what it says of noise depends on
what else the machine does. Needs only Python's standard library. Exit status: 0, or 1 if one attack
was not withstood.
"""

import argparse
import itertools
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

KERNELS = ["rmsnorm_simdgroup", "rmsnorm_rows", "ffn_silu", "rope_apply_dual", "compute_fma"]
SHAPES = ["--shape", "all"]
FINE = (0, 1, 2, 3, 4, 5)  # the documented ways to end, without a signal


def ended(status):
    """As a shell says it: a signal is 128 and its number."""
    return status if status >= 0 else 128 - status


class Attack:
    def __init__(self, program, folder, tries, seed):
        self.program, self.folder, self.tries = program, folder, tries
        self.random = random.Random(seed)
        self.home = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
        self.rows = []

    def count(self, tries):
        return max(1, round(tries * self.tries))

    def path(self, name):
        return os.path.join(self.folder, name)

    def run(self, *words, env=None, **more):
        """The exit status (negative: a signal) and everything that was printed."""
        done = subprocess.run([self.program, *words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, env={**os.environ, **(env or {})},
                              errors="replace", **more)
        return done.returncode, done.stdout

    def start(self, *words):
        return subprocess.Popen([self.program, *words], stdin=subprocess.DEVNULL,
                                stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, errors="replace",
                                start_new_session=True)

    def note(self, what, tries, outcome, is_good):
        self.rows.append((what, tries, outcome, is_good))
        print("| %s | %s | %s%s |" % (what, tries, outcome, "" if is_good else " **NOT WITHSTOOD**"),
              flush=True)

    # Files ------------------------------------------------------------------------------------

    def bench(self, name, *more, kernels=("ffn_silu",), env=None):
        return self.run("bench", *kernels, "--device", "soft", "--out", self.path(name), *more, env=env)

    def kills(self):
        """A run that is killed at any moment leaves whole files, and can be resumed."""
        out, tries, broken, most = self.path("killed.csv"), self.count(30), 0, 0
        for _ in range(tries):
            words = ["bench", "ffn_silu", "buffer_copy", *SHAPES, "--budget", "0.05", "--device", "soft",
                     "--out", out, "--resume"]
            running = self.start(*words)
            time.sleep(self.random.uniform(0.05, 2.5))
            os.killpg(running.pid, signal.SIGKILL)
            running.communicate()
            if not os.path.exists(out):
                continue
            status, text = self.run("compare", out, out)
            rows = text.count("/warm")
            broken += status == 2 or rows < most
            most = max(most, rows)
        status, text = self.bench("killed.csv", *SHAPES, "--budget", "0.05", "--resume",
                                  kernels=("ffn_silu", "buffer_copy"))
        self.note("kill `bench` in the middle, then resume", tries,
                  "%d broken or lost rows; resumed with exit %d" % (broken, status),
                  broken == 0 and status == 0)

    def damage(self, text):
        """One change of the kind that editors, disks and merges make."""
        pick, lines = self.random, text.split("\n")
        at, line = pick.randrange(max(1, len(text))), pick.randrange(len(lines))
        way = pick.randrange(8)
        if way == 0:
            return text[:at]
        if way == 1:
            return text[:at] + chr(pick.randrange(1, 127)) + text[at + 1:]
        if way == 2:
            return text[:at] + text[min(len(text), at + pick.randrange(1, 200)):]
        if way == 3:
            return "\n".join(lines[:line] + [lines[line]] + lines[line:])
        if way == 4:
            return "\n".join(lines[:line] + lines[line + 1:])
        if way == 5:
            fields = lines[line].split(",")
            fields[pick.randrange(len(fields))] = pick.choice(
                ["", "nan", "inf", "-1", "1e300", "1000000000000", "0", "\"", "0x10", "1e-400", "a,b"])
            return "\n".join(lines[:line] + [",".join(fields)] + lines[line + 1:])
        if way == 6:
            return text.replace("# schema: 2", "# schema: %d" % pick.randrange(5))
        return text + pick.choice(["x", ",,,,", "\0\0", "\n\n", text])

    def broken_files(self):
        """Any damage is a verdict or one sentence, never a crash, and never no page."""
        self.bench("b/whole.csv", "--shape", "64,96,1000", "--budget", "0.02")
        rows = open(self.path("b/whole.csv")).read()
        samples = open(self.path("b/whole.samples.csv")).read()
        tries, crashes, silent, pages = self.count(250), 0, 0, 0
        for _ in range(tries):
            is_rows = self.random.random() < 0.6
            bad = self.damage(rows if is_rows else samples)
            open(self.path("b/bad.csv"), "w").write(bad if is_rows else rows)
            open(self.path("b/bad.samples.csv"), "w").write(samples if is_rows else bad)
            status, text = self.run("compare", self.path("b/whole.csv"), self.path("b/bad.csv"))
            crashes += status not in FINE
            silent += status == 2 and "assay: " not in text
            page = self.path("b.html")
            if os.path.exists(page):
                os.remove(page)
            status, text = self.run("report", self.path("b"), "--out", page)
            crashes += status not in FINE
            pages += not os.path.exists(page) and "two devices" not in text and "a row of" not in text
        self.note("break a result file: `compare`, `report`", tries,
                  "%d crashes, %d without a sentence, %d without a page" % (crashes, silent, pages),
                  crashes + silent + pages == 0)

    def full_disk(self):
        """What cannot be written is an error, and what was there stays."""
        disk, failed, tries = self.path("disk"), 0, 0
        os.makedirs(disk)
        mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16k", "none", disk],
                                 stderr=subprocess.DEVNULL).returncode == 0
        if mounted:
            try:
                tries += 2
                status, _ = self.run("bench", "ffn_silu", *SHAPES, "--budget", "0.1", "--device", "soft",
                                     "--out", os.path.join(disk, "b.csv"))
                failed += status != 3
                status, _ = self.run("compare", os.path.join(disk, "b.csv"), os.path.join(disk, "b.csv"))
                failed += status not in (0, 4, 5)
            finally:
                subprocess.run(["umount", disk])
        for words in (["list"], ["check", "buffer_copy"], ["bench", "ffn_silu", "--shape", "64", "--out",
                      self.path("full.csv")], ["--help"], ["claims", os.path.join(self.home, "results")]):
            tries += 1
            with open("/dev/full", "w") as full:
                failed += subprocess.run([self.program, *words], stdout=full,
                                         stderr=subprocess.DEVNULL).returncode in (0, 1)
        self.note("full disk%s" % ("" if mounted else " (output only: no right to mount)"), tries,
                  "%d not noticed or worse" % failed, failed == 0)

    # Ends -------------------------------------------------------------------------------------

    def closed_pipe(self):
        """`| head` ends every verb quietly and alike."""
        statuses, noisy = set(), 0
        for words in (["check", "rmsnorm", "matvec_q4_0"], ["bench", "ffn_silu", *SHAPES, "--budget", "0.02",
                      "--out", self.path("pipe.csv")], ["validate", "rmsnorm"],
                      ["run", "-p", "The", "-n", "200"]):
            running = subprocess.Popen([self.program, *words], stdin=subprocess.DEVNULL,
                                       stdout=subprocess.PIPE, stderr=subprocess.PIPE, errors="replace")
            running.stdout.read(1)
            running.stdout.close()
            said = running.stderr.read()
            statuses.add(ended(running.wait()))
            noisy += "rror" in said
        self.note("close the pipe: check, bench, validate, run", 4,
                  "exit %s; %d noisy" % (" ".join(map(str, sorted(statuses))), noisy),
                  len(statuses) == 1 and noisy == 0)

    def interrupts(self):
        """Ctrl-C ends every verb with 130."""
        statuses, tries, late = set(), 0, []
        for words in (["check"], ["validate"], ["bench", "rmsnorm", *SHAPES, "--out", self.path("int.csv")],
                      ["experiment", "all", "--quick", "--out", self.path("int")],
                      ["run", "-p", "The old smith", "-n", "400"], ["mutants", "rmsnorm"]):
            tries += 1
            running = self.start(*words)
            is_short = words[0] == "run"
            time.sleep(self.random.uniform(0.2, 0.8) if is_short else self.random.uniform(1.5, 3))
            os.killpg(running.pid, signal.SIGINT)
            try:
                running.communicate(timeout=30)
            except subprocess.TimeoutExpired:
                late.append(words[0])
                os.killpg(running.pid, signal.SIGKILL)
                running.communicate()
            statuses.add(ended(running.returncode))
        self.note("Ctrl-C: check, validate, bench, experiment, run, mutants", tries,
                  "exit %s%s" % (" ".join(map(str, sorted(statuses))), "".join(
                      "; %s did not end" % word for word in late)), statuses == {130})

    def two_writers(self):
        tries, refused, whole = self.count(5), 0, 0
        for _ in range(tries):
            words = ["bench", "ffn_silu", "--shape", "64,96", "--budget", "1", "--device", "soft", "--out",
                     self.path("two.csv")]
            first, second = self.start(*words), self.start(*words)
            said = "".join(run.communicate()[1] for run in (first, second))
            refused += sorted((first.returncode, second.returncode))[0] == 0 and "is writing" in said
            whole += self.run("compare", self.path("two.csv"), self.path("two.csv"))[0] != 2
        self.note("two writers of one file", tries, "%d refused, %d whole files" % (refused, whole),
                  refused == tries and whole == tries)

    def shrinking_model(self):
        tries, told = self.count(5), 0
        for _ in range(tries):
            model = self.path("m.gguf")
            shutil.copy(os.path.join(self.home, "models/assay-tiny.gguf"), model)
            running = self.start("run", "-m", model, "-p", "The old smith", "-n", "400")
            time.sleep(self.random.uniform(1, 2))
            os.truncate(model, 100)
            said = running.communicate()[1]
            told += running.returncode == 0 or (running.returncode == 3 and "shorter" in said)
        self.note("a model that shrinks while it runs", tries, "%d told in a sentence" % told,
                  told == tries)

    # Noise ------------------------------------------------------------------------------------

    def verdicts(self, text):
        return re.findall(r"/warm +(same|faster|slower|ambiguous)\b", text)

    def same_code(self):
        """The same kernels against themselves, interleaved."""
        tries, found = self.count(4), []
        for _ in range(tries):
            found += self.verdicts(self.bench("same.csv", "--baseline", os.path.join(self.home, "kernels"),
                                              kernels=KERNELS)[1])
        self.note_false("same code, interleaved", found)

    def note_false(self, what, found):
        wrong = found.count("slower") + found.count("faster")
        self.note(what, len(found), "%d false; %d same, %d ambiguous" % (
            wrong, found.count("same"), found.count("ambiguous")), wrong <= 0.01 * len(found))

    def separate_runs(self):
        """Runs of the same code at different times: each pair, and three against three."""
        names = []
        for i in range(6):
            names.append("run%d.csv" % i)
            self.bench(names[-1], "--budget", "0.5", kernels=KERNELS)
        paths, one, three = [self.path(n) for n in names], [], []
        for a, b in itertools.combinations(paths, 2):
            one += self.verdicts(self.run("compare", a, b)[1])
        for base in itertools.combinations(paths, 3):
            if paths[0] in base:
                now = [p for p in paths if p not in base]
                three += self.verdicts(self.run("compare", *base, "--", *now)[1])
        self.note_false("same code, one run against another", one)
        self.note_false("same code, three runs against three", three)

    def planted(self):
        """compute_fma with a twentieth more rounds: the result is the same, the time is not."""
        slow, tries, found = self.path("slow"), self.count(15), 0
        shutil.copytree(os.path.join(self.home, "kernels"), slow)
        source = open(os.path.join(slow, "compute_fma.metal")).read()
        changed = source.replace("r < rounds", "r < rounds + rounds / 20")
        assert changed != source
        open(os.path.join(slow, "compute_fma.metal"), "w").write(changed)
        for _ in range(tries):
            status, _ = self.bench("planted.csv", "--shape", "1024x400", "--baseline",
                                   os.path.join(self.home, "kernels"), kernels=["compute_fma"],
                                   env={"ASSAY_KERNELS": slow})
            found += status == 4
        self.note("5 % planted, interleaved", tries, "%d found" % found, found >= 0.9 * tries)


ATTACKS = ["kills", "broken_files", "full_disk", "closed_pipe", "interrupts", "two_writers",
           "shrinking_model", "same_code", "separate_runs", "planted"]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--only", default=",".join(ATTACKS))
    parser.add_argument("--tries", type=float, default=1)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    folder = tempfile.mkdtemp(prefix="assay-attack-")
    attack = Attack(os.path.abspath(options.program), folder, options.tries, options.seed)
    print("Load %.1f on %d cores.\n\n| attack | tries | outcome |\n|---|---:|---|" %
          (os.getloadavg()[0], os.cpu_count()), flush=True)
    try:
        for name in options.only.split(","):
            getattr(attack, name)()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return 0 if all(row[3] for row in attack.rows) else 1


if __name__ == "__main__":
    sys.exit(main())
