package npm

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cofferdam-dev/cofferdam/internal/ecosystem"
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
		"other shapes": {`{"description":{},"maintainers":"x","license":["a"],"dependencies":[],"scripts":1}`, ecosystem.Publication{}},
		"no JSON":      {`{`, ecosystem.Publication{}},
		"nothing":      {``, ecosystem.Publication{}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, Protocol{}.Present(ecosystem.File{}, []byte(tt.row), nil)); diff != "" {
				t.Error(diff)
			}
		})
	}
}
