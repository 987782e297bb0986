package advisory

import (
	"archive/zip"
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/cofferdam-dev/cofferdam/api"
	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
)

func at() time.Time { return time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC) }

// open opens a database in dir whose clock stands still, and which does not
// wait for the disk: these tests' machine stays up.
func open(t *testing.T, dir string) *DB {
	t.Helper()
	return Open(dir, Options{Clock: at, disk: hastyDisk{}})
}

type hastyDisk struct{ osDisk }

func (d hastyDisk) createFile(path string) (diskFile, error) {
	f, err := d.osDisk.createFile(path)
	return hastyFile{f}, err
}

func (hastyDisk) syncDir(string) error { return nil }

type hastyFile struct{ diskFile }

func (hastyFile) Sync() error { return nil }

// files lays out a directory of files.
func files(t *testing.T, contents map[string]string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "osv")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range contents {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// zipped packs files.
func zipped(t *testing.T, contents map[string]string) string {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for name, text := range contents {
		w, err := z.Create(name)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = w.Write([]byte(text))
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "all.zip")
	if err := os.WriteFile(path, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// burnt is a record that burns a name.
func burnt(id, ecosystem, name string) string {
	return fmt.Sprintf(`{"schema_version":"1.7.0","id":%q,"modified":"2026-11-01T00:00:00Z","details":"x","affected":[
		{"package":{"ecosystem":%q,"name":%q,"purl":"pkg:x/y"},"ranges":[{"type":"SEMVER","events":[{"introduced":"0"}]}],"database_specific":{"a":[1]}}]}`, id, ecosystem, name)
}

func mustImport(t *testing.T, db *DB, job Job) api.AdvisoryImport {
	t.Helper()
	report, err := db.Import(t.Context(), job, func(Progress) {})
	if err != nil {
		t.Fatalf("%v\n%+v", err, report.Problems)
	}
	return report
}

func mustFacts(t *testing.T, db *DB, ecosystem pkgref.Ecosystem, name string) Facts {
	t.Helper()
	pkg, err := pkgref.New(ecosystem, name, "")
	if err != nil {
		t.Fatal(err)
	}
	f, err := db.Facts(pkg)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// ids are the advisories about a package.
func ids(t *testing.T, db *DB, ecosystem pkgref.Ecosystem, name string) string {
	t.Helper()
	var all string
	for _, m := range mustFacts(t, db, ecosystem, name).Malware {
		all += m.ID + " "
	}
	return all
}
