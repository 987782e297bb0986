package advisory

import (
	"archive/zip"
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
)

// feedRecord is the i-th record of a made-up feed, of the size and kinds of a
// real one: most burn a name, some list versions, some have ranges.
func feedRecord(i int) (name, record string) {
	ecosystem, pkg := "npm", fmt.Sprintf("made-up-%x", uint32(i)*2654435761)
	if i%10 == 9 {
		ecosystem = "PyPI"
	}
	what := `"ranges":[{"type":"SEMVER","events":[{"introduced":"0"}]}]`
	switch i % 20 {
	case 3, 7, 13:
		what = fmt.Sprintf(`"versions":["1.%d.0","1.%d.1","2.0.0"]`, i%7, i%7)
	case 11:
		what = `"ranges":[{"type":"SEMVER","events":[{"introduced":"1.0.0"},{"fixed":"1.2.0"},{"introduced":"2.0.0"},{"last_affected":"2.3.4"}]}]`
	}
	id := fmt.Sprintf("MAL-0000-%d", i)
	return fmt.Sprintf("%s/%s/%s.json", ecosystem, pkg, id), fmt.Sprintf(
		`{"modified":"2026-11-01T00:00:00Z","published":"2026-11-01T00:00:00Z","schema_version":"1.7.0","id":%q,"summary":"Malicious code in %s (%s)","details":%q,"affected":[{"package":{"ecosystem":%q,"name":%q},%s,"database_specific":{"cwes":[{"cweId":"CWE-506","name":"Embedded Malicious Code"}]}}],"credits":[{"name":"nobody","type":"FINDER"}]}`,
		id, pkg, ecosystem, strings.Repeat("This package was made up. ", 30), ecosystem, pkg, what)
}

func feedZip(t *testing.T, n int) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "all.zip")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	buffered := bufio.NewWriter(f)
	z := zip.NewWriter(buffered)
	for i := range n {
		name, record := feedRecord(i)
		header := zip.FileHeader{Name: name, Method: zip.Store}
		if i%4 == 0 { // packing takes longer than all else here
			header.Method = zip.Deflate
		}
		w, err := z.CreateHeader(&header)
		if err == nil {
			_, err = w.Write([]byte(record))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, end := range []func() error{z.Close, buffered.Flush, f.Close} {
		if err := end(); err != nil {
			t.Fatal(err)
		}
	}
	return path
}

func feedDirectory(t *testing.T, n int) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "osv")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for i := range n {
		name, record := feedRecord(i)
		if err := os.WriteFile(filepath.Join(dir, filepath.Base(name)), []byte(record), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// heap is what lives on it.
func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// TestFeed imports a whole feed; COFFERDAM_LONG makes it one of 200,000
// records, as a zip and as a directory.
func TestFeed(t *testing.T) {
	n, forms := 20_000, map[string]func(*testing.T, int) string{"zip": feedZip}
	if os.Getenv("COFFERDAM_LONG") != "" {
		n, forms["directory"] = 200_000, feedDirectory
	}
	for form, lay := range forms {
		t.Run(form, func(t *testing.T) {
			path := lay(t, n)
			dir := filepath.Join(t.TempDir(), "db")
			begun := time.Now()
			report := mustImport(t, Open(dir, Options{}), Job{Path: path, Label: "feed"})
			took := time.Since(begun)
			if report.Source.Advisories != n || report.Unreadable+report.Widened+report.Unnamed != 0 {
				t.Fatalf("%+v", report)
			}
			before := heap()
			begun = time.Now()
			db := open(t, dir)
			opened := time.Since(begun)
			held := heap() - before
			begun = time.Now()
			for i := range n {
				name, _ := feedRecord(i)
				ecosystem, pkg := pkgref.Node, strings.Split(name, "/")[1]
				if i%10 == 9 {
					ecosystem = pkgref.Python
				}
				if f, err := db.Facts(pkgref.Ref{Ecosystem: ecosystem, Name: pkg}); err != nil || len(f.Malware) != 1 || f.Malware[0].ID != fmt.Sprintf("MAL-0000-%d", i) {
					t.Fatalf("%s: %+v, %v", pkg, f, err)
				}
			}
			t.Logf("%d records: imported in %v; opened in %v, %d MB held, %d MB on disk; %v for the facts of a package",
				n, took.Round(time.Millisecond), opened.Round(time.Millisecond), held>>20, report.Source.Bytes>>20, time.Since(begun)/time.Duration(n))
			if held > 60<<20 {
				t.Errorf("an open database holds %d MB", held>>20)
			}
			runtime.KeepAlive(db)
		})
	}
}

// TestLongLists holds what the longest popularity lists take.
func TestLongLists(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "db")
	db := open(t, dir)
	for _, e := range pkgref.Ecosystems() {
		var b strings.Builder
		for i := range maxPopular {
			name := fmt.Sprintf("a%x-name-%d", uint32(i)*2654435761, i%97)
			if e == pkgref.Go {
				name = "host.example/" + strings.Replace(name, "-", "/", 1)
			}
			fmt.Fprintln(&b, name)
		}
		path := filepath.Join(files(t, map[string]string{string(e): b.String()}), string(e))
		mustImport(t, db, Job{Path: path, Popular: e})
	}
	before := heap()
	begun := time.Now()
	db = open(t, dir)
	opened := time.Since(begun)
	for _, e := range pkgref.Ecosystems() {
		mustFacts(t, db, e, map[bool]string{true: "host.example/a/b", false: "some-name"}[e == pkgref.Go])
	}
	held := heap() - before
	t.Logf("opened in %v, ready in %v", opened, time.Since(begun))
	t.Logf("four lists of %d names: %d MB held", maxPopular, held>>20)
	if held > 60<<20 {
		t.Errorf("four lists hold %d MB", held>>20)
	}
	runtime.KeepAlive(db)
}

func BenchmarkFacts(b *testing.B) {
	b.Run("open", func(b *testing.B) {
		for b.Loop() {
			Open(b.TempDir(), Options{})
		}
	})
	p := newPopularity(pkgref.Python, shippedNames(pkgref.Python))
	b.Run("lookalike", func(b *testing.B) {
		for b.Loop() {
			p.nearest("quite-another-name")
		}
	})
	db := Open(b.TempDir(), Options{})
	b.Run("facts again", func(b *testing.B) {
		for b.Loop() {
			_, _ = db.Facts(pkgref.Ref{Ecosystem: pkgref.Python, Name: "quite-another-name"})
		}
	})
}
