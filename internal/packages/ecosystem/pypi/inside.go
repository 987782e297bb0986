package pypi

import (
	"bufio"
	"bytes"
	"io"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/packages/ecosystem"
	"github.com/cofferdam-dev/cofferdam/internal/packages/ecosystem/license"
	"github.com/cofferdam-dev/cofferdam/internal/packages/ecosystem/suspect"
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
	top, ok := topModulePart(path)
	if !ok {
		return
	}
	stem, extension, file := strings.Cut(top, ".")
	switch {
	case startsWith(top):
		in.AddStart(top)
	case !file && strings.Contains(path, "/"):
		in.AddModule(top)
	case file && (extension == "py" || strings.HasSuffix(extension, "so") || strings.HasSuffix(extension, "pyd")):
		in.AddModule(stem)
	}
}

// startsWith tells a name, at the top of where Python looks, of what runs at each of its starts.
func startsWith(top string) bool {
	stem, _, _ := strings.Cut(top, ".")
	return strings.HasSuffix(top, ".pth") || stem == "sitecustomize" || stem == "usercustomize"
}

// tellPublished adds what the publisher says, and lines to read of what runs at each start.
func (w *openedWheel) tellPublished(found *ecosystem.Inspection, metadata []byte) error {
	var licenses license.Claims
	var code suspect.Reader
	for _, m := range w.members {
		read := func(most int64) ([]byte, error) {
			r, err := w.zip.Open(m.Path)
			if err != nil {
				return nil, err
			}
			return io.ReadAll(io.LimitReader(r, most))
		}
		top, atTop := topModulePart(m.Path)
		switch {
		case !m.Mode.IsRegular():
		case strings.HasPrefix(m.Path, w.info+"/"):
			if err := licenses.Collect(m.Path, read); err != nil {
				return err
			}
		case atTop && startsWith(top):
			text, err := read(suspect.MaxText + 1)
			if err != nil {
				return err
			}
			found.Inside.AddSuspect(code.Lines(m.Path, text)...)
		}
	}
	found.Said = publication(metadata, licenses.Files)
	return nil
}

// entryPoints adds what a wheel's entry_points.txt makes known.
func entryPoints(in *ecosystem.Inside, w *openedWheel) {
	text, err := w.readFile("entry_points.txt", maxEntryPoints)
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
