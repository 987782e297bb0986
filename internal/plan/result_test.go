package plan

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cofferdam-dev/cofferdam/api"
	"github.com/cofferdam-dev/cofferdam/internal/fault"
)

const (
	sumA = "58cd2187c01e70e6e26505bca751777aa9f2ee0b7f4300988b709f44e013003f"
	sumB = "73191c47aaa79da394e8fee2dbc2ec827432cab56311122c9e47abf79e390f62"
)

func frames(docs map[string]string) []byte {
	var b bytes.Buffer
	for _, name := range slices.Sorted(maps.Keys(docs)) {
		fmt.Fprintf(&b, "cofferdam-plan %s %d\n%s\n", name, len(docs[name]), docs[name])
	}
	return b.Bytes()
}

func TestFrames(t *testing.T) {
	want := map[string]string{"go.sum": "a\nb", "go.sum.before": ""}
	docs, err := ReadOutput(frames(want))
	if err != nil || len(docs) != 2 || string(docs["go.sum"]) != "a\nb" || docs["go.sum.before"] == nil {
		t.Fatalf("%q, %v", docs, err)
	}
	if docs, err := ReadOutput(nil); err != nil || len(docs) != 0 {
		t.Errorf("nothing gave %q, %v", docs, err)
	}
	for _, bad := range []string{
		"x", "\n", "hello\n", "cofferdam-plan go.sum 5\nabc\n", "cofferdam-plan go.sum 3\nabcd", "cofferdam-plan go.sum 3\nabc",
		"cofferdam-plan go.sum -1\n\n", "cofferdam-plan go.sum 03\nabc\n", "cofferdam-plan go.sum 3 \nabc\n", "cofferdam-plan ../x 3\nabc\n",
		"cofferdam-plan go.sum 99999999999999999999\nabc\n", "cofferdam-plan go.sum 4294967295\nabc\n", "cofferdam-plan go.sum 2147483647\nabc\n",
		string(frames(want)) + "more", string(frames(want)) + string(frames(want)), strings.Repeat("a", 200) + "\n",
	} {
		if docs, err := ReadOutput([]byte(bad)); !errors.Is(err, fault.ErrInvalid) {
			t.Errorf("%q gave %q, %v", bad, docs, err)
		}
	}
	if _, err := ReadOutput(make([]byte, MaxOutput+1)); !errors.Is(err, fault.ErrInvalid) {
		t.Errorf("too much gave %v", err)
	}
}

func FuzzReadOutput(f *testing.F) {
	f.Add([]byte("cofferdam-plan go.sum 3\nabc\n"))
	f.Add([]byte("cofferdam-plan report.json 2\n{}\ncofferdam-plan uv.lock 0\n\n"))
	f.Fuzz(func(t *testing.T, out []byte) {
		docs, err := ReadOutput(out)
		total := 0
		for name, data := range docs {
			total += len(data)
			if !knownFrame(name) {
				t.Errorf("an unknown frame %q", name)
			}
		}
		if total > len(out) || err != nil && docs != nil {
			t.Errorf("%d bytes out of %d, %v", total, len(out), err)
		}
		for _, client := range []Client{Pip, UVPip, NPM, PNPM, GoGet, GoModules} {
			if result, err := Read(client, docs); err == nil {
				_, _ = Lock(client, docs, result)
			}
		}
	})
}

// item is one release of pip's report.
func item(name, version, url, more string) string {
	return fmt.Sprintf(`{"download_info":{"url":%q,"archive_info":{"hashes":{"sha256":%q}}},"is_direct":false,"metadata":{"name":%q,"version":%q,"description":"x"}%s}`,
		url, sumA, name, version, more)
}

func TestPipReport(t *testing.T) {
	report := `{"version":"1","pip_version":"23.0.1","install":[` +
		item("Rich", "13.7.1", "https://files.example/a/b/rich-13.7.1-py3-none-any.whl", "") + `,` +
		`{"download_info":{"url":"https://files.example/old-1.0.tar.gz","archive_info":{"hash":"sha256=` + sumB + `"}},"metadata":{"name":"old","version":"1.0"}},` +
		`{"download_info":{"url":"file:///project","dir_info":{}},"is_direct":true,"metadata":{"name":"project","version":"0.1"}}` +
		`],"environment":{"os_name":"posix"}}`
	got, err := Read(Pip, Documents{"report.json": []byte(report)})
	if err != nil {
		t.Fatal(err)
	}
	want := Result{Ecosystem: "python", Choices: []api.PlanChoice{
		{Name: "old", Version: "1.0", File: "old-1.0.tar.gz", Digests: []string{"sha256:" + sumB}},
		{Name: "rich", Version: "13.7.1", File: "rich-13.7.1-py3-none-any.whl", Digests: []string{"sha256:" + sumA}},
	}, Notes: []string{"project 0.1 is a folder of the project and comes from no registry"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the result differs (-want +got):\n%s", diff)
	}
	lock, err := Lock(Pip, nil, got)
	if want := "old==1.0 \\\n    --hash=sha256:" + sumB + "\nrich==13.7.1 \\\n    --hash=sha256:" + sumA + "\n"; err != nil || string(lock) != want {
		t.Errorf("the lockfile is %q, %v", lock, err)
	}
}

func TestHostileReports(t *testing.T) {
	whole := func(install string) string { return `{"version":"1","install":[` + install + `]}` }
	good := item("rich", "13.7.1", "https://files.example/rich-13.7.1-py3-none-any.whl", "")
	if _, err := Read(Pip, Documents{"report.json": []byte(whole(good))}); err != nil {
		t.Fatal(err) // the positive control
	}
	for name, report := range map[string]string{
		"empty":             "",
		"no object":         "[]",
		"cut":               whole(good)[:100],
		"two documents":     whole(good) + whole(good),
		"another version":   strings.Replace(whole(good), `"1"`, `"2"`, 1),
		"no version":        `{"install":[]}`,
		"twice a key":       strings.Replace(whole(good), `"is_direct":false`, `"is_direct":false,"is_direct":true`, 1),
		"two installs":      `{"version":"1","install":[],"install":[]}`,
		"a wrong type":      whole(`"rich"`),
		"no name":           whole(item("", "1", "https://files.example/a.whl", "")),
		"no version of it":  whole(item("a", "", "https://files.example/a.whl", "")),
		"a path for a name": whole(item("../../etc", "1", "https://files.example/a.whl", "")),
		"direct":            whole(strings.Replace(good, "false", "true", 1)),
		"a repository":      whole(`{"download_info":{"url":"git+https://x.example","vcs_info":{"vcs":"git"}},"metadata":{"name":"a","version":"1"}}`),
		"no archive":        whole(`{"download_info":{"url":"https://x.example/a.whl"},"metadata":{"name":"a","version":"1"}}`),
		"no hash":           whole(strings.Replace(good, sumA, "", 1)),
		"a short hash":      whole(strings.Replace(good, sumA, sumA[:62], 1)),
		"a weak hash":       whole(strings.Replace(good, `"sha256":"`+sumA, `"md5":"0123456789abcdef0123456789abcdef`, 1)),
		"bytes":             "\xff\xfe{}",
		"deep":              strings.Repeat("[", 100_000),
	} {
		if got, err := Read(Pip, Documents{"report.json": []byte(report)}); !errors.Is(err, fault.ErrInvalid) || got.Choices != nil {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	if _, err := Read(Pip, Documents{}); !errors.Is(err, fault.ErrInvalid) {
		t.Errorf("no report gave %v", err)
	}
}

func TestTooManyReleases(t *testing.T) {
	var b strings.Builder
	for i := range maxChoices + 1 {
		fmt.Fprintf(&b, "p%d==1 --hash=sha256:%s\n", i, sumA)
	}
	if got, err := Read(UVPip, Documents{"requirements.txt": []byte(b.String())}); !errors.Is(err, fault.ErrInvalid) {
		t.Errorf("%d releases gave %d choices, %v", maxChoices+1, len(got.Choices), err)
	}
}

const sri = "sha512-PYAthTa2m2VKxuvSD3DPC/Gy+U+sOA1LAuT8mkmRuvw+NACSaeXEQ+NHcVF7rONl6qcaxV3Uuemwawk+7+SJLw=="

func TestNPMLeavesOutOtherSystems(t *testing.T) {
	lock := `{"lockfileVersion":3,"packages":{"":{"name":"demo"},
		"node_modules/a":{"version":"1.0.0","integrity":"` + sri + `"},
		"node_modules/a/node_modules/b":{"version":"2.0.0","integrity":"` + sri + `","os":["linux"],"optional":true},
		"node_modules/b":{"version":"1.0.0","integrity":"` + sri + `","os":["darwin"],"optional":true},
		"node_modules/c":{"version":"1.0.0","integrity":"` + sri + `","os":["!linux"],"optional":true},
		"node_modules/d":{"version":"1.0.0","integrity":"` + sri + `","cpu":["no-such"]},
		"node_modules/e":{"version":"1.0.0","integrity":"` + sri + `","cpu":["no-such"],"optional":true}}}`
	got, err := Read(NPM, Documents{"package-lock.json": []byte(lock)})
	var names []string
	for _, c := range got.Choices {
		names = append(names, c.Name+" "+c.Version)
	}
	if want := []string{"a 1.0.0", "b 2.0.0", "d 1.0.0"}; err != nil || !slices.Equal(names, want) {
		t.Errorf("%q, %v; want %q", names, err, want)
	}
	if len(got.Notes) != 1 || !strings.HasPrefix(got.Notes[0], "3 optional packages ") {
		t.Errorf("notes %q", got.Notes)
	}
}

const (
	h1A = "h1:w5fcysjrx7yqtD/aO+QwRjYZOKnaM9Uh2b40tElTs3Y="
	h1B = "h1:LzX7hefJvL54yjefDEDHNONDjII0t9xZLPXsUe+TKr0="
)

func TestGoSums(t *testing.T) {
	before := "a.example/m v1.0.0 " + h1A + "\na.example/m v1.0.0/go.mod " + h1B + "\n"
	after := before + "b.example/m v1.2.0 " + h1A + "\nb.example/m v1.2.0/go.mod " + h1B + "\nc.example/m v1.0.0/go.mod " + h1B + "\n"
	got, err := Read(GoGet, Documents{"go.sum": []byte(after), "go.sum.before": []byte(before)})
	want := Result{Ecosystem: "go", Choices: []api.PlanChoice{
		{Name: "a.example/m", Version: "v1.0.0", Digests: []string{h1A}, IfRead: true},
		{Name: "b.example/m", Version: "v1.2.0", Digests: []string{h1A}},
	}}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	if got, err := Read(GoGet, Documents{}); err != nil || len(got.Choices) != 0 || len(got.Notes) != 1 {
		t.Errorf("no go.sum gave %+v, %v", got, err)
	}
	downloads := `{"Path":"b.example/m","Version":"v1.2.0","Sum":"` + h1A + `","GoModSum":"` + h1B + `","Zip":"/x"}` + "\n"
	docs := Documents{"download.json": []byte(downloads), "go.sum": []byte(before)}
	got, err = Read(GoModules, docs)
	if err != nil || len(got.Choices) != 1 || got.Choices[0].Name != "b.example/m" {
		t.Fatalf("%+v, %v", got, err)
	}
	lock, err := Lock(GoModules, docs, got)
	if want := before + "b.example/m v1.2.0 " + h1A + "\nb.example/m v1.2.0/go.mod " + h1B + "\n"; err != nil || string(lock) != want {
		t.Errorf("go.sum is %q, %v", lock, err)
	}
	for name, bad := range map[string]string{
		"no sum": `{"Path":"b.example/m","Version":"v1.2.0"}`, "a line": `{"Path":"b.example/m v1 h1:x\n","Version":"v1.2.0","Sum":"` + h1A + `","GoModSum":"` + h1B + `"}`,
		"no module": `{"Path":"../m","Version":"v1.2.0","Sum":"` + h1A + `","GoModSum":"` + h1B + `"}`, "cut": downloads[:40], "no object": "[]",
	} {
		if got, err := Read(GoModules, Documents{"download.json": []byte(bad)}); !errors.Is(err, fault.ErrInvalid) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}

func TestLockNames(t *testing.T) {
	for file, client := range map[string]Client{"lock.txt": Pip, "a/requirements.txt": UVPip, "uv.lock": UVProject, "package-lock.json": NPM, "npm-shrinkwrap.json": NPM, "pnpm-lock.yaml": PNPM, "go.sum": GoGet} {
		if err := client.CheckLockName(file); err != nil {
			t.Errorf("%s: %v", file, err)
		}
	}
	for file, client := range map[string]Client{"lock.json": Pip, "go.sum": UVPip, "lock.txt": NPM, "x.sum": GoGet} {
		if err := client.CheckLockName(file); !errors.Is(err, fault.ErrInvalid) {
			t.Errorf("%s of %s: %v", file, client, err)
		}
	}
}
