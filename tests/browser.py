"""Opens a report in headless Chromium and checks it as a reader would see it.

usage: python3 tests/browser.py PAGE.html [--charts N] [--shots DIR]

No console error, nothing fetched from anywhere, every table sorts by every column both ways, every
chart has a size, ids are unique, light and dark apply (by the system setting and by the button), a
phone does not scroll sideways, the sidebar stays, and every link to a file leads to one. --charts is how many charts
there must be; --shots keeps pictures. Exit status: 0, 1 with one sentence per fault, 77 without Chromium.

Speaks the DevTools protocol through a pair of pipes (JSON texts that end in a zero byte), so that only
Python's standard library is needed.
"""

import argparse
import base64
import json
import os
import select
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.parse

NAMES = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable",
         "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
         "/Applications/Chromium.app/Contents/MacOS/Chromium"]
SECONDS = 60  # for one answer: the browser starts slowly on a busy machine


class Browser:
    def __init__(self, program, folder):
        to_read, to_write = os.pipe()
        from_read, from_write = os.pipe()
        flags = ["--headless", "--remote-debugging-pipe", "--disable-gpu", "--hide-scrollbars",
                 "--no-first-run", "--disable-extensions", "--disable-background-networking",
                 "--disable-dev-shm-usage", "--user-data-dir=" + folder]
        if os.geteuid() == 0:
            flags.append("--no-sandbox")

        def put_pipes():  # where the browser expects them: 3 to read from, 4 to write to
            source, target = os.dup(to_read), os.dup(from_write)
            os.dup2(source, 3)
            os.dup2(target, 4)

        self.process = subprocess.Popen([program] + flags + ["about:blank"], preexec_fn=put_pipes,
                                        close_fds=False, stdin=subprocess.DEVNULL,
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(to_read)
        os.close(from_write)
        self.out, self.input = to_write, from_read
        self.text, self.count, self.session, self.events = b"", 0, None, []

    def read(self, until):
        while b"\0" not in self.text:
            ready, _, _ = select.select([self.input], [], [], max(0, until - time.monotonic()))
            part = os.read(self.input, 1 << 16) if ready else b""
            if not part:
                raise RuntimeError("the browser ended" if ready else "the browser does not answer")
            self.text += part
        message, self.text = self.text.split(b"\0", 1)
        return json.loads(message)

    def ask(self, method, **parameters):
        self.count += 1
        message = {"id": self.count, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.out, json.dumps(message).encode() + b"\0")
        until = time.monotonic() + SECONDS
        while True:
            answer = self.read(until)
            if answer.get("id") != self.count:
                self.events.append(answer)
            elif "error" in answer:
                raise RuntimeError("%s: %s" % (method, answer["error"]["message"]))
            else:
                return answer["result"]

    def wait_for(self, method):
        until = time.monotonic() + SECONDS
        while not any(event.get("method") == method for event in self.events):
            self.events.append(self.read(until))

    def evaluate(self, script):
        answer = self.ask("Runtime.evaluate", expression=script, returnByValue=True)
        if "exceptionDetails" in answer:
            raise RuntimeError("the check itself failed: %s" % answer["exceptionDetails"])
        return answer["result"].get("value")

    def open_page(self, address):
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.ask(domain + ".enable")
        self.set_size(1200, 900, False)
        self.events = []
        self.ask("Page.navigate", url=address)
        self.wait_for("Page.loadEventFired")

    def set_size(self, width, height, mobile):
        self.ask("Emulation.setDeviceMetricsOverride", width=width, height=height,
                 deviceScaleFactor=1, mobile=mobile)

    def set_dark(self, dark):
        self.ask("Emulation.setEmulatedMedia", features=[
            {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])

    def close(self):
        self.process.terminate()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


# Every column of every table is clicked twice. The order is worked out here once more, and not by
# asking the page's own script.
SORT = r"""
(function () {
    var faults = [], moved = 0;
    var tables = document.querySelectorAll("table.sort");
    if (tables.length === 0)
        faults.push("no table of the page sorts");
    function check(values, isNumber, down) {
        for (var i = 1; i < values.length; i++) {
            var a = values[i - 1], b = values[i];
            if (b === null)
                continue;
            if (a === null)
                return false;
            var order = isNumber ? a - b : a.localeCompare(b, "en", { numeric: true });
            if (down ? order < 0 : order > 0)
                return false;
        }
        return true;
    }
    tables.forEach(function (table, at) {
        var name = "table " + (at + 1) + " (" + table.caption.textContent + ")";
        Array.from(table.tHead.rows[0].cells).forEach(function (head, index) {
            var button = head.querySelector("button");
            if (!button) {
                faults.push(name + ": a heading cannot be clicked");
                return;
            }
            var isNumber = head.dataset.sort === "number";
            ["ascending", "descending"].forEach(function (way) {
                var before = table.tBodies[0].innerText;
                button.click();
                moved += table.tBodies[0].innerText !== before;
                var values = Array.from(table.tBodies[0].rows, function (row) {
                    var cell = row.cells[index];
                    if (isNumber) {
                        var value = parseFloat("v" in cell.dataset ? cell.dataset.v : cell.textContent);
                        return isNaN(value) ? null : value;
                    }
                    return cell.textContent.trim() || null;
                });
                if (head.getAttribute("aria-sort") !== way)
                    faults.push(name + ": column " + head.textContent + " does not say that it is " + way);
                if (!check(values, isNumber, way === "descending"))
                    faults.push(name + ": column " + head.textContent + " is not " + way);
            });
        });
    });
    if (tables.length > 0 && moved === 0)
        faults.push("no click on a heading changed the order of any table");
    return faults;
}())
"""

CHARTS = r"""
(function () {
    var faults = [], charts = document.querySelectorAll(".chart"), shown = 0;
    charts.forEach(function (box, at) {
        var image = box.querySelector("img"), size = image && image.getBoundingClientRect();
        if (!image || size.width < 100 || size.height < 50 || image.naturalWidth === 0)
            faults.push("chart " + (at + 1) + " does not show");
        else
            shown++;
    });
    var seen = {};
    document.querySelectorAll("[id]").forEach(function (element) {
        if (seen[element.id])
            faults.push("two elements have the id " + element.id);
        seen[element.id] = true;
    });
    if (document.querySelectorAll("script").length !== 1)
        faults.push("there is a script in the page that is not its own");
    return { faults: faults, shown: shown };
}())
"""

# How bright page and text are, 0 to 255.
LIGHT = r"""
(function () {
    var style = getComputedStyle(document.body);
    return [style.backgroundColor, style.color].map(function (colour) {
        var parts = colour.match(/[\d.]+/g).map(Number);
        return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2];
    });
}())
"""


def check_colours(browser, want_dark, when):
    page, text = browser.evaluate(LIGHT)
    fits = page < 60 and text > 180 if want_dark else page > 200 and text < 80
    return [] if fits else ["%s the page is not %s: page %.0f, text %.0f of 255" % (
        when, "dark" if want_dark else "light", page, text)]


def check_themes(browser):
    faults = []
    for dark in (False, True):
        browser.set_dark(dark)
        faults += check_colours(browser, dark, "where the system is %s" % ("dark" if dark else "light"))
    browser.set_dark(False)
    seen = []
    for _ in range(3):
        browser.evaluate("document.getElementById('theme').click()")
        seen.append(browser.evaluate("document.documentElement.dataset.theme || 'auto'"))
        faults += check_colours(browser, seen[-1] == "dark", "with the theme %s" % seen[-1])
    if sorted(seen) != ["auto", "dark", "light"]:
        faults.append("the button for the theme goes through %s" % ", ".join(seen))
    return faults


def check_width(browser):
    """No table of numbers or claims is wider than its box on a common screen."""
    browser.set_size(1200, 900, False)
    return browser.evaluate("""Array.from(document.querySelectorAll(
        "#times .box, #claims .box")).filter(function (box) {
            return box.scrollWidth > box.clientWidth + 1;
        }).map(function (box) {
            return "at 1200 px a table is cut: " + (box.querySelector("caption") || box).textContent.slice(0, 60);
        })""")


def check_sidebar(browser):
    """It is where it was after scrolling to the end."""
    top = browser.evaluate("scrollTo(0, 1e6), document.querySelector('aside').getBoundingClientRect().top")
    browser.evaluate("scrollTo(0, 0)")
    return [] if abs(top) < 1 else ["the sidebar does not stay: it is at %g after scrolling" % top]


def check_phone(browser):
    browser.set_size(390, 800, True)
    wide, room = browser.evaluate("[document.scrollingElement.scrollWidth, window.innerWidth]")
    browser.set_size(1200, 900, False)
    return [] if wide <= 390 and room <= 390 else [
        "on a phone the page is %d wide where there is room for 390" % max(wide, room)]


def check_links(browser, page):
    faults = []
    for link in browser.evaluate("Array.from(document.querySelectorAll('a'), a => a.getAttribute('href'))"):
        if link.startswith("#"):
            if not browser.evaluate("!!document.getElementById(%s)" % json.dumps(link[1:])):
                faults.append("the link %s leads nowhere" % link)
        elif not os.path.exists(os.path.join(os.path.dirname(page), urllib.parse.unquote(link))):
            faults.append("the link %s leads to no file" % link)
    return faults


def check_events(browser, address):
    faults = []
    for event in browser.events:
        method, what = event.get("method"), event.get("params", {})
        if method == "Runtime.exceptionThrown":
            faults.append("an exception: %s" % json.dumps(what["exceptionDetails"])[:300])
        elif method == "Runtime.consoleAPICalled" and what["type"] in ("error", "assert"):
            faults.append("on the console: %s" % json.dumps(what["args"])[:300])
        elif method == "Log.entryAdded" and what["entry"]["level"] == "error":
            faults.append("on the console: %s" % what["entry"]["text"][:300])
        elif method == "Network.requestWillBeSent":
            asked = what["request"]["url"]
            if asked != address and not asked.startswith("data:"):
                faults.append("the page fetches %s" % asked[:200])
    return faults


def take_picture(browser, path, clip=None):
    whole = browser.ask("Page.getLayoutMetrics")["cssContentSize"]
    clip = clip or {"x": 0, "y": 0, "width": whole["width"], "height": whole["height"]}
    data = browser.ask("Page.captureScreenshot", captureBeyondViewport=True, clip=dict(clip, scale=1))
    with open(path, "wb") as file:
        file.write(base64.b64decode(data["data"]))


def take_pictures(browser, folder):
    os.makedirs(folder, exist_ok=True)
    sections = browser.evaluate("""Array.from(document.querySelectorAll("section"), function (s) {
        var r = s.getBoundingClientRect();
        return [s.id, r.left + scrollX, r.top + scrollY, r.width, r.height];
    })""")
    for name, x, y, width, height in sections:
        take_picture(browser, os.path.join(folder, "light-%s.png" % name),
                     {"x": x, "y": y, "width": width, "height": height})
    take_picture(browser, os.path.join(folder, "light.png"))
    browser.set_dark(True)
    take_picture(browser, os.path.join(folder, "dark.png"))
    browser.set_dark(False)
    browser.set_size(390, 800, True)
    take_picture(browser, os.path.join(folder, "phone.png"))


def look(browser, page, arguments):
    address = "file://" + urllib.parse.quote(page)
    browser.open_page(address)
    if arguments.shots:
        take_pictures(browser, arguments.shots)
        browser.set_size(1200, 900, False)
    browser.evaluate("document.querySelectorAll('details').forEach(d => { d.open = true; })")
    charts = browser.evaluate(CHARTS)
    faults = charts["faults"]
    if arguments.charts is not None and charts["shown"] != arguments.charts:
        faults.append("%d charts show where there must be %d" % (charts["shown"], arguments.charts))
    faults += browser.evaluate(SORT)
    faults += check_themes(browser)
    faults += check_width(browser)
    faults += check_sidebar(browser)
    faults += check_phone(browser)
    faults += check_links(browser, page)
    faults += check_events(browser, address)
    return faults


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("page")
    parser.add_argument("--charts", type=int)
    parser.add_argument("--shots")
    arguments = parser.parse_args()
    program = next((found for found in map(shutil.which, NAMES) if found), None)
    if not program:
        print("there is no Chromium: sh tools/deps.sh browser installs it")
        return 77
    folder = tempfile.mkdtemp(prefix="assay-browser-")
    browser = Browser(program, folder)
    try:
        faults = look(browser, os.path.abspath(arguments.page), arguments)
    finally:
        browser.close()
        shutil.rmtree(folder, ignore_errors=True)
    for fault in faults:
        print(fault)
    if not faults:
        print("the page is fine")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
