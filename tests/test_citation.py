"""What says who made the project, how to cite it, and where to begin: CITATION.cff, the package's metadata, the
container.
"""

import json
import re
import tomllib

import yaml

from .test_package import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def test_the_citation_is_of_this_version():
    """Members that `Citation File Format 1.2.0` requires, and the package's own values."""
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert {"cff-version", "message", "title", "authors"} <= set(cited)
    assert cited["cff-version"] == "1.2.0"
    assert str(cited["version"]) == PROJECT["version"]
    assert cited["license"] == PROJECT["license"]
    assert cited["authors"] == PROJECT["authors"]
    assert set(cited["keywords"]) <= set(PROJECT["keywords"])


def test_the_paper_is_cited_by_its_address():
    [paper] = yaml.safe_load((ROOT / "CITATION.cff").read_text())["references"]
    assert [author["family-names"] for author in paper["authors"]] == ["Malony", "Reed"]
    assert PROJECT["urls"]["Paper"] == f"https://doi.org/{paper['doi']}"
    readme = " ".join((ROOT / "README.md").read_text().split()).lower()
    assert paper["title"].lower() in readme.replace("*", "")
    assert str(paper["year"]) in readme


def test_classifiers_are_of_the_lowest_python():
    lowest = PROJECT["requires-python"].removeprefix(">=")
    versions = [name.rpartition(" :: ")[2] for name in PROJECT["classifiers"] if "Python :: 3." in name]
    assert versions[0] == lowest
    assert PROJECT["classifiers"] == sorted(set(PROJECT["classifiers"]))


def test_the_container_has_what_the_readme_asks_for():
    made = json.loads((ROOT / ".devcontainer" / "devcontainer.json").read_text())
    asked = re.search(r"`apt-get install ([^`]+)`", (ROOT / "README.md").read_text().replace("\n", " "))[1].split()
    installed = re.search(r"apt-get install (.*)", made["onCreateCommand"])[1].split()
    assert set(asked) <= set(installed)
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    commands = [made[name].removeprefix("make ") for name in ("updateContentCommand", "postCreateCommand")]
    assert set(commands) <= targets
    ports = set(re.findall(r"127\.0\.0\.1:(\d+)", "".join((ROOT / "docs" / f"{name}.md").read_text()
                                                        for name in ("live", "view"))))
    assert {str(port) for port in made["forwardPorts"]} == ports
