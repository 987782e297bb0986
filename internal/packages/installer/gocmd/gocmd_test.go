package gocmd

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/packages/installer"
	"github.com/cofferdam-dev/cofferdam/internal/packages/installer/installertest"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	sum := "a.example/m v1.0.0 " + h1A + "\na.example/m v1.0.0/go.mod " + h1B + "\n"
	download := `{"Path":"a.example/m","Version":"v1.0.0","Sum":"` + h1A + `","GoModSum":"` + h1B + `"}` + "\n"
	installertest.Run(t, installertest.Sample{
		Installer: New(),
		Manifests: map[string]installertest.Manifest{
			"go.work": {Text: "go 1.26\n\nuse ./a\n\nreplace a.example/x => b.example/y v1.0.0\n", Roots: []string{"b.example/y"}},
			"go.mod":  {Text: "module x.example/m\n\nrequire a.example/b v1.0.0\n\nrequire c.example/d v1.0.0 // indirect\n\nexclude e.example/f v1.2.3\n\nexclude e.example/g v1.2\n", Roots: []string{"a.example/b", "e.example/g"}},
		},
		Asked: []string{"go get x", "go run x", "go install x"},
		Rewrites: []installertest.Rewrite{
			{Command: "go get a.example/m@latest", Resolver: "go get", Lines: []string{emptyModule, "go get a.example/m@latest || exit"}},
			{Command: "go install -v a.example/m@v1.2.3", Resolver: "go get", Lines: []string{"go get a.example/m@v1.2.3 || exit"}, Not: "go install"},
			{Command: "go mod download -json", Resolver: "go mod download", Lines: []string{`go mod download -json >"$out/download.json" || exit`}},
		},
		Refused: map[string]string{"go get -C /x a.example/m": "another folder's", "go install -toolexec x a.example": "can't be planned"},
		Others:  []string{"go build ./...", "go mod tidy", "go mod"},
		Results: []installertest.Result{
			{Command: "go get a.example/m", Documents: installer.Documents{sumFile: []byte(sum)}, Releases: []string{"a.example/m v1.0.0"}},
			{Command: "go mod download", Documents: installer.Documents{downloadFile: []byte(download)}, Releases: []string{"a.example/m v1.0.0"}},
		},
		Wanted: [2]installer.Wanted{{Name: "a.example/m", Version: "v1.2.3"}, {Name: "b.example/m"}},
	})
}

const (
	h1A = "h1:w5fcysjrx7yqtD/aO+QwRjYZOKnaM9Uh2b40tElTs3Y="
	h1B = "h1:LzX7hefJvL54yjefDEDHNONDjII0t9xZLPXsUe+TKr0="
)

func TestGoSums(t *testing.T) {
	before := "a.example/m v1.0.0 " + h1A + "\na.example/m v1.0.0/go.mod " + h1B + "\n"
	after := before + "b.example/m v1.2.0 " + h1A + "\nb.example/m v1.2.0/go.mod " + h1B + "\nc.example/m v1.0.0/go.mod " + h1B + "\n"
	got, err := sumsResolver().Result(installer.Documents{"go.sum": []byte(after), "go.sum.before": []byte(before)})
	want := installer.Result{Ecosystem: "go", Choices: []installer.Choice{
		{Name: "a.example/m", Version: "v1.0.0", Digests: []string{h1A}, IfRead: true},
		{Name: "b.example/m", Version: "v1.2.0", Digests: []string{h1A}},
	}}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	if got, err := sumsResolver().Result(installer.Documents{}); err != nil || len(got.Choices) != 0 || len(got.Notes) != 1 {
		t.Errorf("no go.sum gave %+v, %v", got, err)
	}
	fetched := `{"Path":"b.example/m","Version":"v1.2.0","Sum":"` + h1A + `","GoModSum":"` + h1B + `","Zip":"/x"}` + "\n"
	docs := installer.Documents{"download.json": []byte(fetched), "go.sum": []byte(before)}
	got, err = downloads().Result(docs)
	if err != nil || len(got.Choices) != 1 || got.Choices[0].Name != "b.example/m" {
		t.Fatalf("%+v, %v", got, err)
	}
	lock, err := downloads().WriteLock(docs, got)
	if want := before + "b.example/m v1.2.0 " + h1A + "\nb.example/m v1.2.0/go.mod " + h1B + "\n"; err != nil || string(lock) != want {
		t.Errorf("go.sum is %q, %v", lock, err)
	}
	for name, bad := range map[string]string{
		"no sum": `{"Path":"b.example/m","Version":"v1.2.0"}`, "a line": `{"Path":"b.example/m v1 h1:x\n","Version":"v1.2.0","Sum":"` + h1A + `","GoModSum":"` + h1B + `"}`,
		"no module": `{"Path":"../m","Version":"v1.2.0","Sum":"` + h1A + `","GoModSum":"` + h1B + `"}`, "cut": fetched[:40], "no object": "[]",
	} {
		if got, err := downloads().Result(installer.Documents{"download.json": []byte(bad)}); !errors.Is(err, fault.ErrInvalid) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}

// TestMirror: the checksum database is the upstream's, and never silently another.
func TestMirror(t *testing.T) {
	t.Parallel()
	for log, want := range map[string]string{"": "off", "sum.example+1+key": "sum.example+1+key", "sum.example": ""} {
		env := New().Mirror(installer.Registry{Index: "https://proxy.example/", Log: log, BuiltIn: true})
		if env["GOSUMDB"] != want || env["GOPROXY"] != "https://proxy.example" || env["GONOSUMDB"] != "none" {
			t.Errorf("with the log %q: %v", log, env)
		}
	}
}
