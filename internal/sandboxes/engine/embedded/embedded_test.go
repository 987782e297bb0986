package embedded

import (
	"strings"
	"testing"
	"testing/fstest"
)

func TestStage(t *testing.T) {
	for name, files := range map[string]fstest.MapFS{
		"missing": {"bin/.keep": {}},
		"empty":   {"bin/cofferdam-stage": {}},
	} {
		if data, err := readStage(files); data != nil || err != nil {
			t.Errorf("%s: %q %v", name, data, err)
		}
	}
	data, err := readStage(fstest.MapFS{"bin/cofferdam-stage": {Data: []byte("x")}})
	if err != nil || string(data) != "x" {
		t.Errorf("%q %v", data, err)
	}
}

// An embedded file, if there is one, is a program.
func TestEmbedded(t *testing.T) {
	data, err := Stage()
	if err != nil || data != nil && !strings.HasPrefix(string(data), "\x7fELF") {
		t.Errorf("the embedded stage is not an ELF file, or %v", err)
	}
}
