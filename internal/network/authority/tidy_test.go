package authority

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestManySetsAreNotAllInMemory: however many sets of hosts there are, and each keeps its
// authority all the same.
func TestManySetsAreNotAllInMemory(t *testing.T) {
	t.Parallel()
	h, _ := openHosts(t)
	first, err := h.CAPEM(t.Context(), []string{"api.example"})
	if err != nil {
		t.Fatal(err)
	}
	_, release, err := h.takeAuthority("00")
	if err != nil {
		t.Fatal(err)
	}
	for i := range keptSets + 20 {
		_, done, err := h.takeAuthority(fmt.Sprintf("%04x", i+1))
		if err != nil {
			t.Fatal(err)
		}
		done()
	}
	if n := len(h.by); n != keptSets {
		t.Errorf("%d sets are in memory", n)
	}
	if h.by["00"] == nil {
		t.Error("a set that is in use was forgotten, so there may be two of it")
	}
	release()
	if again, err := h.CAPEM(t.Context(), []string{"api.example"}); err != nil || string(again) != string(first) {
		t.Errorf("a set that was forgotten has another authority: %v", err)
	}
}

// TestTidySets: what nobody has used for long goes, and nothing that is spared or in use.
func TestTidySets(t *testing.T) {
	t.Parallel()
	h, dir := openHosts(t)
	sets, cas := map[string]string{}, map[string]string{}
	for _, name := range []string{"unused.example", "spared.example", "held.example", "fresh.example"} {
		ca, _ := ofHosts(t, h, []string{name}, name)
		set, _, err := setOfHosts([]string{name})
		if err != nil {
			t.Fatal(err)
		}
		sets[name], cas[name] = set, string(ca)
	}
	long := time.Now().Add(-100 * 24 * time.Hour)
	for _, name := range []string{"unused.example", "spared.example", "held.example"} {
		if err := os.Chtimes(filepath.Join(dir, sets[name]), long, long); err != nil {
			t.Fatal(err)
		}
	}
	for _, path := range []string{leaving + "00", "notes"} { // of a daemon that died, and somebody's
		if err := errors.Join(os.Mkdir(filepath.Join(dir, path), 0o700), os.Chtimes(filepath.Join(dir, path), long, long)); err != nil {
			t.Fatal(err)
		}
	}
	_, release, err := h.takeAuthority(sets["held.example"])
	if err != nil {
		t.Fatal(err)
	}
	if n, err := h.Tidy(time.Now().Add(-24*time.Hour), [][]string{{"spared.example"}, {"one"}}); n != 1 || err != nil {
		t.Errorf("%d are gone: %v", n, err)
	}
	release()
	for path, there := range map[string]bool{sets["unused.example"]: false, leaving + "00": false, "notes": true} {
		if _, err := os.Stat(filepath.Join(dir, path)); (err == nil) != there {
			t.Errorf("%s: %v", path, err)
		}
	}
	for name, ca := range cas {
		again, leaf := ofHosts(t, h, []string{name}, name)
		if same := string(again) == ca; same != (name != "unused.example") {
			t.Errorf("%s has the authority that it had: %v", name, same)
		}
		if err := verifyWithGo(t, again, leaf, name); err != nil {
			t.Errorf("a leaf of %s is not its authority's: %v", name, err)
		}
	}
	if n, err := h.Tidy(long, nil); n != 0 || err != nil {
		t.Errorf("what was just used is gone: %d %v", n, err)
	}
}
