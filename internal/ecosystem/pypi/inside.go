package pypi

import (
	"bufio"
	"bytes"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/ecosystem"
)

// maxEntryPoints bounds an entry_points.txt, in bytes. Of a longer one nothing is told.
const maxEntryPoints = 1 << 20

// inside adds what a path of a wheel brings: modules at the top of where Python looks,
// programs in the wheel's scripts, and files that Python reads at its start.
func inside(in *ecosystem.Inside, path, info string, head []byte) {
	in.AddPath(path, head)
	if strings.HasPrefix(path, info+"/") {
		return
	}
	if top, rest, _ := strings.Cut(path, "/"); strings.HasSuffix(top, ".data") {
		if name, ok := strings.CutPrefix(rest, "scripts/"); ok {
			in.AddEntryPoint("script: " + name)
		}
	}
	top, ok := atTop(path)
	if !ok {
		return
	}
	stem, extension, file := strings.Cut(top, ".")
	switch {
	case strings.HasSuffix(top, ".pth") || stem == "sitecustomize" || stem == "usercustomize":
		in.AddStart(top)
	case !file && strings.Contains(path, "/"):
		in.AddModule(top)
	case file && (extension == "py" || strings.HasSuffix(extension, "so") || strings.HasSuffix(extension, "pyd")):
		in.AddModule(stem)
	}
}

// entryPoints adds what a wheel's entry_points.txt makes known.
func entryPoints(in *ecosystem.Inside, w *openedWheel) {
	text, err := w.read("entry_points.txt", maxEntryPoints)
	if err != nil {
		return // most have none
	}
	group := ""
	lines := bufio.NewScanner(bytes.NewReader(text))
	for lines.Scan() {
		line := strings.TrimSpace(lines.Text())
		switch {
		case strings.HasPrefix(line, "[") && strings.HasSuffix(line, "]"):
			group = strings.Trim(line, "[]")
		case strings.Contains(line, "=") && !strings.HasPrefix(line, "#") && group != "":
			in.AddEntryPoint(group + ": " + line)
		}
	}
}
