package advisory

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// TestImportForms: a directory, a zip and a file say the same.
func TestImportForms(t *testing.T) {
	contents := map[string]string{
		"npm/bad-name/MAL-0000-1.json":            burnt("MAL-0000-1", "npm", "bad-name"),
		"pypi/bad-name/MAL-0000-2.json":           burnt("MAL-0000-2", "PyPI", "Bad_Name"),
		"withdrawn/npm/good-name/MAL-0000-3.json": burnt("MAL-0000-3", "npm", "good-name"),
		"npm/other/GHSA-0000.json":                burnt("GHSA-0000", "npm", "other"),
		"README.md":                               "no record",
		"modified_id.csv":                         "x,y",
	}
	one := filepath.Join(files(t, map[string]string{"a.json": burnt("MAL-0000-1", "npm", "bad-name")}), "a.json")
	for name, tt := range map[string]struct {
		path    string
		records int
		python  string
	}{
		"directory": {files(t, contents), 4, "MAL-0000-2 "},
		"zip":       {zipped(t, contents), 4, "MAL-0000-2 "},
		"file":      {one, 1, ""},
	} {
		t.Run(name, func(t *testing.T) {
			db := open(t, filepath.Join(t.TempDir(), "db"))
			before := db.Generation()
			report := mustImport(t, db, Job{Path: tt.path, Label: "test"})
			if got := ids(t, db, pkgref.Node, "bad-name"); got != "MAL-0000-1 " {
				t.Errorf("node: %q", got)
			}
			if got := ids(t, db, pkgref.Python, "bad-name"); got != tt.python {
				t.Errorf("python: %q", got)
			}
			if got := ids(t, db, pkgref.Node, "good-name") + ids(t, db, pkgref.Node, "other"); got != "" {
				t.Errorf("withdrawn or harmless, and still known: %q", got)
			}
			if report.Records != tt.records || (tt.records > 1 && (report.Withdrawn != 1 || report.Source.Vulnerabilities != 1)) {
				t.Errorf("%+v", report)
			}
			if report.Source.Burnt == 0 || db.Generation() == before || report.Generation != db.Generation() {
				t.Errorf("generation %s, %+v", db.Generation(), report)
			}
			if again := open(t, db.dir); again.Generation() != db.Generation() || ids(t, again, pkgref.Node, "bad-name") == "" {
				t.Error("another one opens something else")
			}
		})
	}
}

// TestReplace: a label replaces what it imported, other labels stay, and facts
// are the union.
func TestReplace(t *testing.T) {
	db := open(t, filepath.Join(t.TempDir(), "db"))
	feed := func(names ...string) string {
		contents := map[string]string{}
		for i, n := range names {
			contents[n+".json"] = burnt(fmt.Sprintf("MAL-%s-%d", n, i), "npm", n)
		}
		return files(t, contents)
	}
	mustImport(t, db, Job{Path: feed("first", "both"), Label: "one"})
	mustImport(t, db, Job{Path: feed("second", "both"), Label: "two"})
	if got := ids(t, db, pkgref.Node, "both"); got != "MAL-both-1 MAL-both-1 " {
		t.Errorf("both: %q", got)
	}
	report := mustImport(t, db, Job{Path: feed("third"), Label: "one"})
	if report.Replaced == nil || report.Replaced.Packages["node"] != 2 {
		t.Errorf("%+v", report.Replaced)
	}
	for name, want := range map[string]bool{"first": false, "second": true, "third": true, "both": true} {
		if got := ids(t, db, pkgref.Node, name) != ""; got != want {
			t.Errorf("%s is known: %v", name, got)
		}
	}
	if err := db.Remove("one"); err != nil {
		t.Fatal(err)
	}
	if got := ids(t, db, pkgref.Node, "third"); got != "" {
		t.Errorf("third: %q", got)
	}
	if err := db.Remove("one"); !errors.Is(err, fault.ErrNotFound) {
		t.Errorf("%v", err)
	}
	entries, err := os.ReadDir(db.dir)
	if err != nil || len(entries) != 2 {
		t.Errorf("the directory should hold the manifest and one table: %v %v", entries, err)
	}
	if sources := db.Status().Sources; len(sources) != 1 || sources[0].Label != "two" || !sources[0].Imported.Equal(at()) {
		t.Errorf("%+v", sources)
	}
}

// TestRefused: an import that is refused says why and replaces nothing.
func TestRefused(t *testing.T) {
	record := burnt("MAL-0000-9", "npm", "newly-bad")
	list := filepath.Join(files(t, map[string]string{"l": "# ecosystem: python\nx1\n"}), "l")
	pipe := filepath.Join(t.TempDir(), "gone")
	linked := files(t, map[string]string{"a.json": record})
	if err := os.Symlink(t.TempDir(), filepath.Join(linked, "elsewhere")); err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		job  Job
		want string
	}{
		"a record that can't be read":    {Job{Path: files(t, map[string]string{"a.json": record, "b.json": "{"})}, "1 of 2 records"},
		"a record in a zip that can't":   {Job{Path: zipped(t, map[string]string{"a.json": record, "b.json": "{"})}, "1 of 2 records"},
		"a link to a directory":          {Job{Path: linked}, "1 of 2 records"},
		"a record about no package":      {Job{Path: files(t, map[string]string{"a.json": `{"id":"GHSA-1"}`})}, "no advisory about a package"},
		"an empty directory":             {Job{Path: files(t, nil)}, "no advisory about a package"},
		"no such file":                   {Job{Path: pipe}, "no such file"},
		"a relative path":                {Job{Path: "osv"}, "absolute path"},
		"a device":                       {Job{Path: "/dev/null"}, "neither a directory nor a regular file"},
		"half a zip":                     {Job{Path: half(t, zipped(t, map[string]string{"a.json": record}))}, "no whole zip"},
		"text":                           {Job{Path: filepath.Join(files(t, map[string]string{"l": "requests\n"}), "l")}, "--popular"},
		"another ecosystem's list":       {Job{Path: list, Popular: pkgref.Node}, "about python by its first line"},
		"a list of no ecosystem":         {Job{Path: filepath.Join(files(t, map[string]string{"l": "# ecosystem: perl\nx\n"}), "l")}, "perl"},
		"a name that can't be":           {Job{Path: filepath.Join(files(t, map[string]string{"l": "# ecosystem: python\nx1\na b\n"}), "l")}, "1 of 2 lines"},
		"an empty list":                  {Job{Path: filepath.Join(files(t, map[string]string{"l": "# ecosystem: python\n"}), "l")}, "names no package"},
		"a label for a path":             {Job{Path: list, Label: "../x"}, "can't be a label"},
		"the product's own label":        {Job{Path: list, Label: "shipped"}, "comes with the product"},
		"a list in the place of malware": {Job{Path: list, Label: "base"}, "as malware before"},
		"one that would drop python":     {Job{Path: files(t, map[string]string{"a.json": record}), Label: "base"}, "1 python packages"},
		"an unknown ecosystem":           {Job{Path: list, Popular: "perl"}, "perl"},
	} {
		t.Run(name, func(t *testing.T) {
			db := open(t, filepath.Join(t.TempDir(), "db"))
			mustImport(t, db, Job{Path: files(t, map[string]string{"a.json": burnt("MAL-0000-1", "PyPI", "known-bad")}), Label: "base"})
			before := db.Generation()
			report, err := db.Import(t.Context(), tt.job, func(Progress) {})
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Fatalf("%v; want %q", err, tt.want)
			}
			if strings.Contains(tt.want, " of 2 ") && len(report.Problems) != 1 {
				t.Errorf("%+v", report.Problems)
			}
			if db.Generation() != before || ids(t, db, pkgref.Python, "known-bad") == "" || ids(t, db, pkgref.Node, "newly-bad") != "" {
				t.Error("something was replaced")
			}
		})
	}
}

func half(t *testing.T, path string) string {
	t.Helper()
	info, err := os.Stat(path)
	if err == nil {
		err = os.Truncate(path, info.Size()/2)
	}
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// TestKeepGoing: the rest is imported, and how much is missing stays known.
func TestKeepGoing(t *testing.T) {
	contents := map[string]string{"good.json": burnt("MAL-0000-1", "npm", "bad-name")}
	for i := range 12 {
		contents[fmt.Sprintf("%02d.json", i)] = "{"
	}
	db := open(t, filepath.Join(t.TempDir(), "db"))
	report := mustImport(t, db, Job{Path: files(t, contents), Label: "x", KeepGoing: true})
	if report.Unreadable != 12 || len(report.Problems) != mostReported || report.Problems[0].Where != "00.json" {
		t.Errorf("%+v", report)
	}
	if s := db.Status().Sources[0]; s.LeftOut != 12 || ids(t, db, pkgref.Node, "bad-name") == "" {
		t.Errorf("%+v", s)
	}
}

// TestLimits: what is too large is refused, however small it is packed.
func TestLimits(t *testing.T) {
	large := strings.Replace(burnt("MAL-0000-1", "npm", "x"), `"details":"x"`, `"details":"`+strings.Repeat("x", 5000)+`"`, 1)
	many := map[string]string{}
	for i := range 30 {
		many[fmt.Sprintf("%d.json", i)] = burnt(fmt.Sprintf("MAL-0000-%d", i), "npm", fmt.Sprintf("name-%d", i))
	}
	for name, tt := range map[string]struct {
		path   string
		limits limits
		want   string
	}{
		"a large record":           {files(t, map[string]string{"a.json": large}), limits{record: 4096, records: 10, total: 1 << 20}, "can't be read"},
		"a large record in a zip":  {zipped(t, map[string]string{"a.json": large}), limits{record: 4096, records: 10, total: 1 << 20}, "can't be read"},
		"many records":             {files(t, many), limits{record: 4096, records: 10, total: 1 << 20}, "more than 10 records"},
		"many members of a zip":    {zipped(t, many), limits{record: 4096, records: 10, total: 1 << 20}, "30 members"},
		"much in a zip":            {zipped(t, many), limits{record: 4096, records: 100, total: 2000}, "larger than"},
		"much in a directory":      {files(t, many), limits{record: 4096, records: 100, total: 2000}, "larger than"},
		"much to keep":             {files(t, many), limits{record: 4096, records: 100, total: 1 << 20, table: 500}, "takes more than"},
		"all within":               {zipped(t, many), limits{record: 4096, records: 100, total: 1 << 20}, ""},
		"all within a directory":   {files(t, many), limits{record: 4096, records: 100, total: 1 << 20}, ""},
		"a record at its very end": {files(t, map[string]string{"a.json": large}), limits{record: int64(len(large)), records: 1, total: int64(len(large))}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			db := Open(filepath.Join(t.TempDir(), "db"), Options{limits: tt.limits})
			_, err := db.Import(t.Context(), Job{Path: tt.path, Label: "x"}, func(Progress) {})
			if (err == nil) != (tt.want == "") || err != nil && (!strings.Contains(err.Error(), tt.want) || !errors.Is(err, fault.ErrInvalid)) {
				t.Fatalf("%v; want %q", err, tt.want)
			}
		})
	}
}

// TestZipLies: a zip whose end claims more members than may be is refused
// before its directory is read.
func TestZipLies(t *testing.T) {
	path := zipped(t, map[string]string{"a.json": burnt("MAL-0000-1", "npm", "x")})
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	data[len(data)-22+10], data[len(data)-22+11] = 0xff, 0xff
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	db := Open(filepath.Join(t.TempDir(), "db"), Options{limits: limits{record: 4096, records: 10, total: 1 << 20}})
	if _, err := db.Import(t.Context(), Job{Path: path}, func(Progress) {}); err == nil || !strings.Contains(err.Error(), "65535 members") {
		t.Fatal(err)
	}
}

// TestImportEnds: a cancelled import replaces nothing, and two at a time are
// one too many.
func TestImportEnds(t *testing.T) {
	db := open(t, filepath.Join(t.TempDir(), "db"))
	dir := files(t, map[string]string{"a.json": burnt("MAL-0000-1", "npm", "x")})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := db.Import(ctx, Job{Path: dir}, func(Progress) {}); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	if ids(t, db, pkgref.Node, "x") != "" {
		t.Error("something was imported")
	}
	var second error
	_, err := db.Import(t.Context(), Job{Path: dir}, func(Progress) {
		_, second = db.Import(t.Context(), Job{Path: dir}, func(Progress) {})
	})
	if err != nil || !errors.Is(second, fault.ErrConflict) {
		t.Fatal(err, second)
	}
}

func TestLists(t *testing.T) {
	dir := files(t, map[string]string{
		"text": "# ecosystem: python\n\n# a remark\nRequests\nnumpy\nrequests\n",
		"json": "{\"name\":\"left\",\"downloads\":5}\n\"right\"\n",
		"long": "# ecosystem: rust\n" + strings.Repeat("a\n", 3) + numbered(maxPopular+5),
	})
	db := open(t, filepath.Join(t.TempDir(), "db"))
	if !mustFacts(t, db, pkgref.Python, "flask").Popular {
		t.Error("what is shipped does not count before an import")
	}
	report := mustImport(t, db, Job{Path: filepath.Join(dir, "text")})
	if report.Source.Kind != "popular" || report.Source.Packages["python"] != 2 || report.Repeated != 1 || report.Source.Label != "text" {
		t.Errorf("%+v", report)
	}
	mustImport(t, db, Job{Path: filepath.Join(dir, "json"), Popular: pkgref.Node})
	report = mustImport(t, db, Job{Path: filepath.Join(dir, "long")})
	if report.Beyond != 6 || report.Source.Packages["rust"] != maxPopular {
		t.Errorf("%+v", report)
	}
	for _, tt := range []struct {
		ecosystem pkgref.Ecosystem
		name      string
		popular   bool
	}{
		{pkgref.Python, "requests", true},
		{pkgref.Python, "flask", false}, // only in what is shipped
		{pkgref.Node, "right", true},
		{pkgref.Go, "github.com/spf13/cobra", true}, // still shipped
	} {
		if got := mustFacts(t, db, tt.ecosystem, tt.name).Popular; got != tt.popular {
			t.Errorf("%s is popular: %v", tt.name, got)
		}
	}
	if shipped := db.Status().Shipped; len(shipped) != 1 || shipped[0].Packages["go"] == 0 {
		t.Errorf("%+v", shipped)
	}
}

func numbered(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "name-%d\n", i)
	}
	return b.String()
}

// TestShippedLists: what comes with the product can be read whole.
func TestShippedLists(t *testing.T) {
	for _, e := range pkgref.Ecosystems() {
		data, err := shipped.Open("shipped/" + string(e) + ".txt")
		if err != nil {
			t.Fatal(err)
		}
		list, err := readNames(data, e)
		if err != nil || list.badLines > 0 || list.repeated > 0 || len(list.names) < 300 {
			t.Errorf("%s: %d names, %v, %+v, %d repeated", e, len(list.names), err, list.bad, list.repeated)
		}
	}
}
