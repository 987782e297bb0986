package pip

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/packages/installer"
)

const (
	sumA = "58cd2187c01e70e6e26505bca751777aa9f2ee0b7f4300988b709f44e013003f"
	sumB = "73191c47aaa79da394e8fee2dbc2ec827432cab56311122c9e47abf79e390f62"
)

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
	got, err := resolver().Result(installer.Documents{"report.json": []byte(report)})
	if err != nil {
		t.Fatal(err)
	}
	want := installer.Result{Ecosystem: "python", Choices: []installer.Choice{
		{Name: "old", Version: "1.0", File: "old-1.0.tar.gz", Digests: []string{"sha256:" + sumB}},
		{Name: "rich", Version: "13.7.1", File: "rich-13.7.1-py3-none-any.whl", Digests: []string{"sha256:" + sumA}},
	}, Notes: []string{"project 0.1 is a folder of the project and comes from no registry"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the result differs (-want +got):\n%s", diff)
	}
	lock, err := resolver().WriteLock(nil, got)
	if want := "old==1.0 \\\n    --hash=sha256:" + sumB + "\nrich==13.7.1 \\\n    --hash=sha256:" + sumA + "\n"; err != nil || string(lock) != want {
		t.Errorf("the lockfile is %q, %v", lock, err)
	}
}

func TestHostileReports(t *testing.T) {
	whole := func(install string) string { return `{"version":"1","install":[` + install + `]}` }
	good := item("rich", "13.7.1", "https://files.example/rich-13.7.1-py3-none-any.whl", "")
	if _, err := resolver().Result(installer.Documents{"report.json": []byte(whole(good))}); err != nil {
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
		if got, err := resolver().Result(installer.Documents{"report.json": []byte(report)}); !errors.Is(err, fault.ErrInvalid) || got.Choices != nil {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	if _, err := resolver().Result(installer.Documents{}); !errors.Is(err, fault.ErrInvalid) {
		t.Errorf("no report gave %v", err)
	}
}
