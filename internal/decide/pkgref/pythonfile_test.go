package pkgref_test

import (
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
)

func TestPythonFile(t *testing.T) {
	for _, c := range []struct {
		name, project  string
		wants, version string // "": it is refused
		wheel          bool
	}{
		{"foo_bar-1.0-py3-none-any.whl", "", "foo-bar", "1.0", true},
		{"foo-1.0-1build-py3-none-any.whl", "foo", "foo", "1.0", true},
		{"foo-1.0_1-py3-none-any.whl", "", "foo", "1.0.post1", true},
		{"foo-2.0+cpu-py3-none-any.whl", "", "foo", "2.0+cpu", true},
		{"foo-1.0-build-py3-none-any.whl", "", "", "", true},
		{"foo-1.0-py3-none-any~.whl", "", "", "", true},
		{"foo-1.0-py3-any.whl", "", "", "", true},
		{"foo-1.0-py3-none-any.whl", "bar", "", "", true},
		{"foo-bar-1.0.tar.gz", "", "foo-bar", "1.0", false},
		{"foo-1.0-1.tar.gz", "foo", "foo", "1.0.post1", false},
		{"foo-1.0-1.tar.gz", "", "foo-1-0", "1", false}, // a name may have dots and digits
		{"Foo.Bar-1.0.zip", "foo-bar", "foo-bar", "1.0", false},
		{"foo-1.0.txz", "foo", "foo", "1.0", false},
		{"foo-1.0.tar.lzma", "foo", "foo", "1.0", false},
		{"foo-1.0.exe", "", "", "", false},
		{"foo.tar.gz", "", "", "", false},
		{"../foo-1.0.tar.gz", "", "", "", false},
		{"foo-.tar.gz", "foo", "", "", false},
	} {
		f, err := pkgref.ParsePythonFile(c.name, c.project)
		if (err == nil) != (c.wants != "") || f.Project != c.wants || f.Version != c.version || err == nil && f.Wheel != c.wheel {
			t.Errorf("%s of %q: %+v, %v", c.name, c.project, f, err)
		}
	}
}

func TestDistInfo(t *testing.T) {
	for folder, want := range map[string]string{
		"foo_bar-1.0.dist-info": "python foo-bar 1.0", "foo-1.0_1.dist-info": "python foo 1.0.post1",
		"foo-1.0.data": "", "foo.dist-info": "", "foo-x.dist-info": "",
	} {
		if ref, ok := pkgref.ParseDistInfo(folder); ok != (want != "") || ok && ref.String() != want {
			t.Errorf("%s: %v, %v", folder, ref, ok)
		}
	}
}

func TestNodeAlias(t *testing.T) {
	for _, c := range [][4]string{ // name, spec; of, range
		{"a", "^1", "a", "^1"},
		{"a", "npm:b@^1", "b", "^1"},
		{"a", " NPM: @s/b@ ^1 ", "@s/b", "^1"},
		{"a", "npm:@s/b", "@s/b", ""},
		{"a", "npm:../b@1", "", "1"},
		{"a", "npm", "a", "npm"},
	} {
		if of, rang := pkgref.NodeAlias(c[0], c[1]); of != c[2] || rang != c[3] {
			t.Errorf("%q: %q, %q", c[:2], of, rang)
		}
	}
}
