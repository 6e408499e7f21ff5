"""structure.py junit|sarif FILE: is it what readers of JUnit XML or SARIF 2.1.0 require?

Checks the elements, attributes and properties that their schemas require, and that what refers to
something else fits it. With jsonschema or xmlschema installed and SARIF_SCHEMA or JUNIT_SCHEMA naming a
schema, the file is validated against that too."""
import json
import os
import re
import sys
import xml.etree.ElementTree as tree


def need(condition, why):
    if not condition:
        sys.exit(f"{sys.argv[2]}: {why}")


def check_junit(path):
    root = tree.parse(path).getroot()
    need(root.tag == "testsuites" and not root.attrib, "the root is <testsuites> without attributes")
    need(len(root) > 0, "there is a suite")
    for number, suite in enumerate(root):
        need(suite.tag == "testsuite", "suites are <testsuite>")
        for name in ("name", "package", "hostname"):
            need(suite.get(name), f"a suite has {name}")
        need(suite.get("id") == str(number), "ids count from 0")
        need(re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d", suite.get("timestamp", "")), "timestamp")
        float(suite.get("time"))
        tags = [child.tag for child in suite]
        need(tags[0] == "properties" and tags[-2:] == ["system-out", "system-err"], "order of parts")
        cases = suite.findall("testcase")
        need(len(cases) == len(tags) - 3 == int(suite.get("tests")), "tests counts the cases")
        for tag, count in (("failure", "failures"), ("error", "errors"), ("skipped", "skipped")):
            have = sum(1 for case in cases if case.find(tag) is not None)
            need(have == int(suite.get(count)), f"{count} counts <{tag}>")
        for case in cases:
            need(case.get("name") and case.get("classname"), "a case has name and classname")
            float(case.get("time"))
            need(len(case) <= 1, "a case has one outcome")
            for outcome in case:
                need(outcome.tag == "skipped" or outcome.get("type"), "an outcome has a type")
                need(outcome.get("message"), "an outcome has a message")
        need(len({case.get("name") for case in cases}) == len(cases), "names differ")
    schema = os.environ.get("JUNIT_SCHEMA")
    if schema:
        import xmlschema
        xmlschema.XMLSchema(schema).validate(path)


def check_sarif(path):
    with open(path, encoding="utf-8") as file:
        log = json.load(file)
    need(log["version"] == "2.1.0" and len(log["runs"]) == 1, "one run of version 2.1.0")
    run = log["runs"][0]
    driver = run["tool"]["driver"]
    need(driver["name"] == "assay" and driver["version"], "the tool has a name and a version")
    ids = [rule["id"] for rule in driver["rules"]]
    need(len(set(ids)) == len(ids) and all(ids), "ids of rules differ")
    need({result["ruleId"] for result in run["results"]} == set(ids), "each rule is used")
    for result in run["results"]:
        need(ids[result["ruleIndex"]] == result["ruleId"], "ruleIndex points to ruleId")
        need(result["level"] in ("error", "warning", "note"), "levels")
        need(result["message"]["text"], "a result has a message")
        place = result["locations"][0]["physicalLocation"]
        uri = place["artifactLocation"]["uri"]
        need(uri and " " not in uri and "\\" not in uri, "a uri")
        region = place.get("region", {"startLine": 1})  # without one: the whole file
        need(region["startLine"] >= 1, "lines count from 1")
        need(region.get("startColumn", 1) >= 1, "columns count from 1")
    schema = os.environ.get("SARIF_SCHEMA")
    if schema:
        import jsonschema
        with open(schema, encoding="utf-8") as file:
            jsonschema.validate(log, json.load(file))


{"junit": check_junit, "sarif": check_sarif}[sys.argv[1]](sys.argv[2])
print("well formed")
