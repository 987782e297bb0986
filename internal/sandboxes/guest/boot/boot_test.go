package boot

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestADeviceIsWaitedFor: errors of looking at it are those of a device that is not there yet;
// who waited in vain is told the last one.
func TestADeviceIsWaitedFor(t *testing.T) {
	t.Parallel()
	broken, last := errors.New("it can't be read"), errors.New("it can't be read now")
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		err := awaitFound("device root", func() (bool, error) {
			if time.Since(begin) < deviceWait/2 {
				return false, broken
			}
			return true, broken
		})
		if err != nil {
			t.Errorf("it came late: %v", err)
		}
		begin = time.Now()
		err = awaitFound("device root", func() (bool, error) {
			if time.Since(begin) < deviceWait {
				return false, broken
			}
			return false, last
		})
		if !errors.Is(err, last) || errors.Is(err, broken) || !strings.HasPrefix(err.Error(), "there is no device root after 30s: ") {
			t.Errorf("it did not come: %v", err)
		}
		if err := awaitFound("device root", func() (bool, error) { return false, nil }); err == nil || err.Error() != "there is no device root after 30s" {
			t.Errorf("it was never seen: %v", err)
		}
	})
}

// TestADeviceIsFoundByItsName: a file that can't be read hides no other, and is told of where
// none has the name.
func TestADeviceIsFoundByItsName(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := errors.Join(
		os.MkdirAll(filepath.Join(dir, "broken", "serial"), 0o700), // a folder can't be read as a file
		os.Mkdir(filepath.Join(dir, "null"), 0o700), os.WriteFile(filepath.Join(dir, "null", "serial"), []byte("root\n"), 0o600),
		os.Mkdir(filepath.Join(dir, "nowhere"), 0o700), os.WriteFile(filepath.Join(dir, "nowhere", "serial"), []byte("scratch"), 0o600),
	); err != nil {
		t.Fatal(err)
	}
	files := filepath.Join(dir, "*", "serial")
	if path, err := deviceNamed(files, "root"); path != "/dev/null" || err != nil {
		t.Errorf("%q %v", path, err)
	}
	if path, err := deviceNamed(files, "scratch"); path != "/dev/nowhere" || !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a device without a node: %q %v", path, err)
	}
	if path, err := deviceNamed(files, "another"); path != "" || err == nil || !strings.Contains(err.Error(), "broken") {
		t.Errorf("a device that is not there: %q %v", path, err)
	}
}
