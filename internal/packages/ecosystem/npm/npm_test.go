package npm_test

import (
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/packages/ecosystem"
	"github.com/cofferdam-dev/cofferdam/internal/packages/ecosystem/ecosystemtest"
	"github.com/cofferdam-dev/cofferdam/internal/packages/ecosystem/npm"
	"github.com/cofferdam-dev/cofferdam/internal/packages/ecosystem/npm/npmtest"
)

const (
	typeFull        = "application/json"
	typeAbbreviated = "application/vnd.npm.install-v1+json"
	corgi           = typeAbbreviated + "; q=1.0, application/json; q=0.8, */*"
)

func place() ecosystem.Place { return ecosystem.Place{Base: "/", Files: true} }

// packed is a release with its URL.
func packed(tb testing.TB, name, version string, members map[string]any, files ...[2]string) npmtest.Release {
	tb.Helper()
	r := npmtest.Pack(tb, name, version, members, files...)
	r.URL = "https://index.example" + r.Path()
	return r
}

func TestConformance(t *testing.T) {
	for _, project := range []string{"foo", "@scope/foo"} {
		page := npmtest.Packument(t, project, nil,
			packed(t, project, "1.0.0", map[string]any{"dependencies": map[string]string{"bar": "^1.0.0"}}),
			packed(t, project, "1.1.0-rc.1", nil),
			packed(t, project, "2.0.0", map[string]any{"scripts": map[string]string{"postinstall": "node x.js"}}),
		)
		ecosystemtest.Run(t, ecosystemtest.Sample{
			Protocol: npm.New(), Project: project, URL: "https://index.example/" + project, ContentType: npmtest.Type, Body: page,
			Files: 3, Place: place(), IndexPath: "/" + project,
			Spellings: nil, // all spellings of a page are served: TestSpellings
			Hostile: []string{
				"/foo/", "/foo//bar", "/@scope", "/@scope/", "/@scope%2ffoo%2fbar", "/@scope%252ffoo", "/scope%2ffoo", "/@scope%2f..%2ffoo", "/@%2ffoo",
				"/foo;x", "/foo%3Bx", "/foo%40", "/.foo", "/_foo", "/node_modules", "/foo/^1", "/foo/1.0.0/x", "/foo/-", "/foo/-/", "/foo/-/bar-1.0.0.tgz",
				"/foo/-/foo-1.0.0.tgz/", "/foo/-/foo-1.tgz", "/foo/-/foo-1.0.0.zip", "/foo/-/..%2ffoo-1.0.0.tgz", "/foo/-/@scope/foo-1.0.0.tgz",
				"/@scope/foo/-/@other/foo-1.0.0.tgz", "/@scope/foo/-/scope-foo-1.0.0.tgz", "/-/package/x;y/dist-tags", "/-/npm/v1/attestations/a%252fb@1.0.0",
			},
			Accept: []string{typeFull, corgi},
			Shown:  func(f ecosystem.File) string { return `"` + f.Version + `":` },
		})
	}
}
