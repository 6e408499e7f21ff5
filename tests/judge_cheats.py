"""The judge on trial: kernels that cheat, all to be refused, and honest ones, all to be accepted.

usage: python3 tests/judge_cheats.py ASSAY [NAME...] [--all] [--csv FILE] [--device D] [--seed N]

A cheat is a file of tests/cheats, or one of several kernels of a file, after a line "// cheat: NAME". Lines
at its head say what it claims to be and what must become of it:
    // base: rmsnorm_rows          the kernel whose place it takes
    // refused: check, validate    by which stage; any of several. "slower" or "gains nothing" is a verdict
    // because: never written      a part of the reason, or of the finding's class; | between several
    // timed: 17x4096              it is timed, with these shapes; "yes": with those of the judge
    // launch: rms.launch          how it is launched
An honest kernel is one of ours in its own place: the first of each op that the device can run, or all of
them. NAME is a cheat, an op or a kernel, or a glob of them. Verdicts are appended to the file of --csv as
they are made, and a later run makes only those that it lacks. Exit status: 0, 1 if a verdict is wrong, 2
for a NAME that there is not, 3 if the device can run none of them.
"""

import argparse
import concurrent.futures
import csv
import fnmatch
import glob
import itertools
import json
import os
import re
import subprocess
import sys
import threading

HOME = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
VALIDATED_VALUES = 2**20  # of the largest listed case: by default it has 2^25, which takes minutes


class Trial:
    def __init__(self, options):
        self.options = options
        self.found = set()  # the names that matched something
        self.lock = threading.Lock()
        self.before = set()
        self.verdicts, self.skipped = [], []
        if options.csv and os.path.exists(options.csv):
            with open(options.csv, newline="") as file:
                self.before = {row["name"] for row in csv.DictReader(file) if not row["mistake"]}

    def is_wanted(self, *names):
        matching = [f for f in self.options.names if any(fnmatch.fnmatch(n, f) for n in names)]
        self.found.update(matching)
        return matching or not self.options.names

    def find_cheats(self):
        for path in sorted(glob.glob(os.path.join(HOME, "tests", "cheats", "*.metal"))):
            name = os.path.splitext(os.path.basename(path))[0]
            with open(path) as file:
                parts = re.split(r"^// cheat: (.*)$", file.read(), flags=re.M)
            cheats = zip([name], parts) if len(parts) == 1 else zip(parts[1::2], parts[2::2])
            for kernel, text in cheats:
                head = dict(re.findall(r"^// (base|refused|because|timed|launch): (.*)$", text, re.M))
                if self.is_wanted(kernel, name):
                    yield [dict(head, name=kernel, path=path, kernel=kernel if len(parts) > 1 else "")]

    def find_honest(self):
        """Of each op a list: the first of it that the device can run is judged."""
        listed = json.loads(subprocess.check_output([self.options.assay, "list", "--json"]))
        for op, kernels in itertools.groupby(listed, lambda k: k["op"]):
            group = [dict(name=k["kernel"], base=k["kernel"], kernel=k["kernel"], path=os.path.join(HOME, "kernels", k["file"]))
                     for k in kernels if self.is_wanted(k["kernel"], op)]
            yield from ([one] for one in group) if self.options.all else [group]

    def judge(self, subject):
        """What the judge says, or None: this device cannot run the kernel."""
        timed = subject.get("timed")
        how = ["--budget", "0.2", "--again", "0.2"] + (["--shape", timed] if timed != "yes" else [])
        words = [self.options.assay, "judge", subject["path"], "--base", subject["base"], "--json", "--jobs", "1",
                 *(how if timed else ["--untimed"]), "--seed", str(self.options.seed),
                 "--validate-most", str(VALIDATED_VALUES), "--timeout", "600"]
        words += ["--device", self.options.device] if self.options.device else []
        words += ["--kernel", subject["kernel"]] if subject["kernel"] else []
        words += ["--launch", os.path.join(HOME, "tests", "cheats", subject["launch"])] if "launch" in subject else []
        done = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace")
        if done.returncode == 3 and "cannot be judged on this machine" in done.stderr:
            return None
        if not done.stdout:
            return {"verdict": "not judged", "reason": done.stderr.strip(), "stage": "not judged", "case": ""}
        answer = json.loads(done.stdout)["candidates"][0]
        return {**answer, "stage": answer["stage"] or "accepted"}

    def try_first(self, group):
        for subject in group:
            if subject["name"] in self.before:
                return
            answer = self.judge(subject)
            with self.lock:
                if answer:
                    return self.keep(subject, answer)
                self.skipped.append(subject["name"])

    def keep(self, subject, answer):
        mistake = find_mistake(subject, answer)
        expected = subject.get("refused", "accepted")
        self.verdicts.append(("refused" in subject, mistake))
        if mistake:
            print(f"{subject['name']:<24} {mistake}, expected {expected}: {answer['stage']}: {answer['reason']}"
                  f" ({answer['case']})", flush=True)
        elif "refused" in subject:
            what = ", ".join(filter(None, (answer["stage"], answer["finding"])))
            said = f"right, and {answer['verdict']}" if answer["right"] else f"refused by {what}"
            print(f"{subject['name']:<24} {said}", flush=True)
        if self.options.csv:
            with open(self.options.csv, "a", newline="") as file:
                rows = csv.writer(file)
                if not file.tell():
                    rows.writerow(["name", "expected", "verdict", "mistake", "reason", "seed"])
                rows.writerow([subject["name"], expected, answer["stage"], mistake, answer["reason"],
                               self.options.seed])


def find_mistake(subject, answer):
    """"", or what is wrong with the verdict."""
    if answer["verdict"] == "not judged":
        return "not judged"
    if "refused" not in subject:
        return "" if answer["right"] else "honest, and refused"
    if answer["right"]:
        is_known = answer["verdict"] in subject["refused"] or (
            answer["verdict"] in ("same", "slower", "ambiguous") and "gains nothing" in subject["refused"])
        return "" if is_known else "ACCEPTED"
    if answer["stage"] not in subject["refused"]:
        return "refused by another stage"
    said = (answer["reason"], answer["finding"], answer["detail"])
    is_why = any(why in text for why in subject["because"].split("|") for text in said)
    return "" if is_why else "refused for another reason"


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("usage: ")[1].split("\n")[0])
    parser.add_argument("assay")
    parser.add_argument("names", nargs="*")
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--csv")
    parser.add_argument("--device")
    parser.add_argument("--seed", type=int, default=int.from_bytes(os.urandom(4), "big") | 1)
    trial = Trial(parser.parse_intermixed_args())
    groups = [group for group in (*trial.find_cheats(), *trial.find_honest()) if group]
    unknown = set(trial.options.names) - trial.found
    if unknown:
        parser.exit(2, f"no cheat, op or kernel is called {', '.join(unknown)}\n")
    print(f"# seed {trial.options.seed}", flush=True)
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(trial.try_first, groups))
    if trial.skipped:
        print(f"{len(trial.skipped)} kernels are skipped, which this device cannot run:", *trial.skipped)
    cheats = [mistake for is_cheat, mistake in trial.verdicts if is_cheat]
    honest = [mistake for is_cheat, mistake in trial.verdicts if not is_cheat]
    print(f"{len(cheats)} cheats, {cheats.count('ACCEPTED')} accepted; {len(honest)} honest kernels, "
          f"{honest.count('honest, and refused')} refused; {sum(map(bool, cheats + honest))} verdicts not as expected")
    sys.exit(1 if any(cheats + honest) else 0 if trial.verdicts or trial.before else 3)


if __name__ == "__main__":
    main()
