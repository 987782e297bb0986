package python

import (
	"strings"
	"testing"
)

func FuzzParseMetadata(f *testing.F) {
	f.Add([]byte("Name: a\nVersion: 1\n\nbody"))
	f.Fuzz(func(t *testing.T, head []byte) {
		name, version := parseMetadata(head)
		if strings.ContainsAny(name+version, "\n") {
			t.Errorf("%q %q", name, version)
		}
	})
}

func FuzzProjectName(f *testing.F) {
	f.Add("pyproject.toml", []byte("[project]\nname = \"a\""))
	f.Add("setup.py", []byte("name='a'"))
	f.Fuzz(func(t *testing.T, file string, head []byte) {
		if strings.Contains(projectName(file, head), "\n") {
			t.Errorf("%q", head)
		}
	})
}
