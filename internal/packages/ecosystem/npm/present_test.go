package npm

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cofferdam-dev/cofferdam/internal/packages/ecosystem"
)

func TestPresent(t *testing.T) {
	for name, tt := range map[string]struct {
		row  string
		want ecosystem.Publication
	}{
		"all": {
			`{"description":"does\nthings","maintainers":[{"name":"a","email":"a@x.example"},"b <b@x.example>",7],"repository":{"type":"git","url":"git+https://x.example/r"},
			  "license":{"type":"MIT"},"dependencies":{"z":"^1","y":2,"x":"*"},"scripts":{"test":"t","postinstall":"node x.js"}}`,
			ecosystem.Publication{
				Summary: "does things", Maintainer: "a, b <b@x.example>", Homepage: "git+https://x.example/r", License: "MIT",
				Requires: []string{"x *", "z ^1"}, Scripts: []string{"postinstall: node x.js"},
			},
		},
		"what runs for a repository's copy alone": {`{"scripts":{"prepare":"husky","prepublish":"x","preuninstall":"y"}}`, ecosystem.Publication{}},
		"all that runs": {
			`{"scripts":{"install":"a","preinstall":"b","postinstall":"c","prepare":"d"},"gypfile":true,"hasInstallScript":true}`,
			ecosystem.Publication{Scripts: []string{"install: a", "postinstall: c", "preinstall: b"}},
		},
		"a build without a script": {`{"gypfile":true,"hasInstallScript":true}`, ecosystem.Publication{Scripts: []string{"binding.gyp: node-gyp rebuild"}}},
		"no build":                 {`{"gypfile":false,"hasInstallScript":false}`, ecosystem.Publication{}},
		"a page that says no more": {`{"hasInstallScript":true}`, ecosystem.Publication{Scripts: []string{"something: its page says so (hasInstallScript), and not what"}}},
		"other shapes":             {`{"description":{},"maintainers":"x","license":["a"],"dependencies":[],"scripts":1}`, ecosystem.Publication{}},
		"no JSON":                  {`{`, ecosystem.Publication{}},
		"nothing":                  {``, ecosystem.Publication{}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, Protocol{}.Present(ecosystem.File{}, []byte(tt.row), nil)); diff != "" {
				t.Error(diff)
			}
		})
	}
}
