package main

import (
	"bytes"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/serve/ui"
)

func TestPaint(t *testing.T) {
	t.Setenv("NO_COLOR", "")
	for line, want := range map[string]string{
		"  refused  python x  why":   "  \x1b[31mrefused\x1b[0m  python x  why",
		"  ALARM installed  x":       "  \x1b[1;31mALARM\x1b[0m installed  x",
		"cofferdam: run x: 1 served": "cofferdam: run x: 1 served",
		"refused":                    "refused",
		"":                           "",
	} {
		if got := colourFirstWord(line); got != want {
			t.Errorf("%q", got)
		}
	}
	if ui.Coloured(&bytes.Buffer{}) {
		t.Error("a buffer takes colours")
	}
}
