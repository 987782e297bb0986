package embedded

import (
	"errors"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

func TestBinary(t *testing.T) {
	for name, files := range map[string]fstest.MapFS{
		"missing": {"bin/.keep": {}},
		"empty":   {"bin/cofferdam-guest": {}},
	} {
		if _, err := binary(files); !errors.Is(err, fault.ErrUnavailable) || !strings.Contains(err.Error(), "make build") {
			t.Errorf("%s: %v", name, err)
		}
	}
	data, err := binary(fstest.MapFS{"bin/cofferdam-guest": {Data: []byte("x")}})
	if err != nil || string(data) != "x" {
		t.Errorf("%q %v", data, err)
	}
}

// An embedded file, if there is one, is a program.
func TestEmbedded(t *testing.T) {
	data, err := Binary()
	if err == nil && !strings.HasPrefix(string(data), "\x7fELF") {
		t.Error("the embedded agent is not an ELF file")
	}
	if err != nil && !errors.Is(err, fault.ErrUnavailable) {
		t.Error(err)
	}
}
