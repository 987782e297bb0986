package advisory

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// crashDisk does so many calls, then the machine is down: the call fails half
// done, and so does every one after it.
type crashDisk struct {
	hastyDisk
	left *int
}

var errDown = errors.New("the machine is down")

func (d crashDisk) step() error {
	*d.left--
	if *d.left < 0 {
		return errDown
	}
	return nil
}

func (d crashDisk) createFile(path string) (diskFile, error) {
	if err := d.step(); err != nil {
		return nil, err
	}
	f, err := d.hastyDisk.createFile(path)
	return crashFile{f, d}, err
}

func (d crashDisk) rename(from, to string) error {
	if err := d.step(); err != nil {
		return err
	}
	return d.hastyDisk.rename(from, to)
}

func (d crashDisk) syncDir(dir string) error {
	if err := d.step(); err != nil {
		return err
	}
	return d.hastyDisk.syncDir(dir)
}

func (d crashDisk) removeFile(path string) error {
	if err := d.step(); err != nil {
		return err
	}
	return d.hastyDisk.removeFile(path)
}

type crashFile struct {
	diskFile
	disk crashDisk
}

func (f crashFile) Write(p []byte) (int, error) {
	if err := f.disk.step(); err != nil {
		n, _ := f.diskFile.Write(p[:len(p)/2])
		return n, err
	}
	return f.diskFile.Write(p)
}

func (f crashFile) Sync() error {
	if err := f.disk.step(); err != nil {
		return err
	}
	return f.diskFile.Sync()
}

// TestCrash: an import that ends at any call leaves the old facts or the new
// ones, whole; and the next import works.
func TestCrash(t *testing.T) {
	old := files(t, map[string]string{"a.json": burnt("MAL-0000-1", "npm", "old-one")})
	newer := files(t, map[string]string{"a.json": burnt("MAL-0000-2", "npm", "new-one")})
	sawOld, sawNew := false, false
	for _, first := range []bool{false, true} { // the very first import of a database too
		for calls := 0; ; calls++ {
			dir := filepath.Join(t.TempDir(), "db")
			if !first {
				mustImport(t, open(t, dir), Job{Path: old, Label: "x"})
			}
			left := calls
			_, err := Open(dir, Options{disk: crashDisk{left: &left}}).Import(t.Context(), Job{Path: newer, Label: "x"}, func(Progress) {})
			db := open(t, dir)
			isOld, isNew := ids(t, db, pkgref.Node, "old-one") != "", ids(t, db, pkgref.Node, "new-one") != ""
			if isOld && isNew || !isOld && !isNew && !first {
				t.Fatalf("after %d calls (first %v): old %v, new %v", calls, first, isOld, isNew)
			}
			if err == nil && !isNew {
				t.Fatalf("after %d calls the import said that it was done", calls)
			}
			sawOld, sawNew = sawOld || isOld, sawNew || isNew
			mustImport(t, db, Job{Path: newer, Label: "x"})
			entries, _ := os.ReadDir(dir)
			if ids(t, db, pkgref.Node, "new-one") == "" || len(entries) != 2 {
				t.Fatalf("after %d calls the next import left %v", calls, entries)
			}
			if left >= 0 {
				break
			}
		}
	}
	if !sawOld || !sawNew {
		t.Errorf("the calls that failed did not cover the import: old %v, new %v", sawOld, sawNew)
	}
}

// TestDamage: a database that is not what was imported answers nothing, says
// what to do, and doing that helps.
func TestDamage(t *testing.T) {
	feed := files(t, map[string]string{"a.json": burnt("MAL-0000-1", "npm", "bad-name")})
	list := filepath.Join(files(t, map[string]string{"names": "# ecosystem: node\nright\n"}), "names")
	change := func(pattern string, how func(path string, data []byte) error) func(*testing.T, string) {
		return func(t *testing.T, dir string) {
			t.Helper()
			paths, err := filepath.Glob(filepath.Join(dir, pattern))
			if err != nil || len(paths) != 1 {
				t.Fatal(paths, err)
			}
			data, err := os.ReadFile(paths[0])
			if err == nil {
				err = how(paths[0], data)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	flip := func(path string, data []byte) error {
		data[len(data)/2] ^= 1
		return os.WriteFile(path, data, 0o600)
	}
	cut := func(path string, data []byte) error { return os.Truncate(path, int64(len(data)-1)) }
	grow := func(path string, data []byte) error { return os.WriteFile(path, append(data, '\n'), 0o600) }
	gone := func(path string, _ []byte) error { return os.Remove(path) }
	again := func(t *testing.T, db *DB) {
		t.Helper()
		mustImport(t, db, Job{Path: feed})
		mustImport(t, db, Job{Path: list})
	}
	all := func(t *testing.T, db *DB) {
		t.Helper()
		if _, err := db.Import(t.Context(), Job{Path: feed}, func(Progress) {}); err == nil || !strings.Contains(err.Error(), "remove --all") {
			t.Fatalf("an import into who knows what: %v", err)
		}
		if err := db.RemoveAll(); err != nil {
			t.Fatal(err)
		}
		again(t, db)
	}
	for name, tt := range map[string]struct {
		damage func(*testing.T, string)
		says   string
		repair func(*testing.T, *DB)
	}{
		"a bit of a table":      {change("malware-*", flip), `"osv"`, again},
		"a table cut":           {change("malware-*", cut), `"osv"`, again},
		"a table longer":        {change("malware-*", grow), `"osv"`, again},
		"a table gone":          {change("malware-*", gone), "advisory remove osv", again},
		"a bit of a list":       {change("popular-*", flip), `"names"`, again},
		"a list gone":           {change("popular-*", gone), "advisory remove names", again},
		"a bit of the manifest": {change("manifest", flip), "advisory remove --all", all},
		"the manifest cut":      {change("manifest", cut), "advisory remove --all", all},
		"the manifest gone":     {change("manifest", gone), "advisory remove --all", all},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "db")
			again(t, open(t, dir))
			tt.damage(t, dir)
			db := open(t, dir)
			if damage := db.Damage(); damage == nil || !strings.Contains(damage.Error(), tt.says) || db.Generation() != "damaged" {
				t.Errorf("%v, generation %s", damage, db.Generation())
			}
			if db.Status().Damage == "" {
				t.Error("the status does not say it")
			}
			for _, p := range []string{"bad-name", "right", "never-heard-of"} {
				if f, err := db.Facts(pkgref.Ref{Ecosystem: pkgref.Node, Name: p}); !errors.Is(err, fault.ErrUnavailable) || f.Malware != nil {
					t.Errorf("%s: %+v, %v", p, f, err)
				}
			}
			tt.repair(t, db)
			if err := db.Damage(); err != nil || ids(t, db, pkgref.Node, "bad-name") == "" {
				t.Errorf("after the repair: %v", err)
			}
		})
	}
}

// TestRemoveRepairs: removing the damaged source is a repair too, and leaves
// the rest.
func TestRemoveRepairs(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "db")
	db := open(t, dir)
	mustImport(t, db, Job{Path: files(t, map[string]string{"a.json": burnt("MAL-0000-1", "npm", "one")}), Label: "one"})
	damaged := db.Status().Sources[0]
	mustImport(t, db, Job{Path: files(t, map[string]string{"a.json": burnt("MAL-0000-2", "npm", "two")}), Label: "two"})
	if err := os.Remove(filepath.Join(dir, "malware-"+damaged.SHA256[:16]+tableSuffix)); err != nil {
		t.Fatal(err)
	}
	db = open(t, dir)
	if db.Damage() == nil {
		t.Fatal("no damage")
	}
	if err := db.Remove("one"); err != nil || db.Damage() != nil || ids(t, db, pkgref.Node, "two") == "" {
		t.Error(err, db.Damage())
	}
}

// TestNothingImported: without a database there is nothing to say against
// anything, and no error.
func TestNothingImported(t *testing.T) {
	db := open(t, filepath.Join(t.TempDir(), "none"))
	if f := mustFacts(t, db, pkgref.Python, "never-heard-of-it"); f.Malware != nil || f.Popular || f.Lookalike != nil {
		t.Errorf("%+v", f)
	}
	if db.Damage() != nil || db.ReviewDue() || db.Generation() == "" {
		t.Error(db.Damage(), db.Generation())
	}
	if _, err := os.Stat(db.dir); !errors.Is(err, os.ErrNotExist) {
		t.Error("opening makes nothing")
	}
}
