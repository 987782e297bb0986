package isolation

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var (
	trialsFlag = flag.Int("isolation.trials", 0, "how many trials each channel has; 0: nothing is measured")
	onlyFlag   = flag.String("isolation.only", "", "the names of the channels to measure, with commas")
	jsonFlag   = flag.String("isolation.json", "", "a file to write the rows to, as JSON")
)

// controls are the channels that leak in a daemon that is built with -tags leaky, and how.
var controls = map[string]Way{"approvals": State, "denied name": Timing}

// TestIsolation measures each channel between two sandboxes of different tokens, and finds
// the leaks of a daemon that leaks. `make isolation` runs it.
func TestIsolation(t *testing.T) {
	if *trialsFlag == 0 {
		t.Skip("make isolation runs it; it takes a quarter of an hour")
	}
	var rows []Row
	sound := openHouse(t, filepath.Join(root(t), "bin"))
	for _, c := range chosen() {
		measured := c.run(t, sound, *trialsFlag, false).rows()
		tellProgress(t, measured)
		rows = append(rows, measured...)
	}
	leaky := openHouse(t, buildLeaky(t))
	for _, c := range channels() { // whichever were chosen: without controls nothing is shown
		way, leaks := controls[c.name]
		if !leaks {
			continue
		}
		measured := slices.DeleteFunc(c.run(t, leaky, *trialsFlag, true).rows(), func(r Row) bool { return r.Way != way })
		tellProgress(t, measured)
		rows = append(rows, measured...)
	}
	for i := range rows {
		if rows[i].Verdict = Decide(rows[i], len(rows)); rows[i].Verdict.Failed() {
			t.Errorf("%s, read from %s: %s", rows[i].Channel, rows[i].Way, rows[i].Verdict)
		}
	}
	if err := WriteTable(os.Stdout, rows); err != nil {
		t.Fatal(err)
	}
	if *jsonFlag == "" {
		return
	}
	file, err := os.Create(*jsonFlag)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if err := WriteJSON(file, rows); err != nil {
		t.Fatal(err)
	}
}

// tellProgress shows whoever waits what was measured so far.
func tellProgress(t *testing.T, rows []Row) {
	t.Helper()
	for _, r := range rows {
		fmt.Fprintf(os.Stderr, "%s, read from %s: %d of %d, %.2f bits/s, %.1f slots a second %s\n", r.Channel, r.Way, r.Right, r.Trials, r.Bits, r.Slots, r.Note)
	}
}

func channels() []channel { return append(throughGateway(), throughAPI()...) }

func chosen() []channel {
	all := channels()
	if *onlyFlag == "" {
		return all
	}
	names := strings.Split(*onlyFlag, ",")
	return slices.DeleteFunc(all, func(c channel) bool { return !slices.Contains(names, c.name) })
}

// buildLeaky builds the daemon that leaks on purpose.
func buildLeaky(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	buildProgram(t, filepath.Join(dir, "cofferdam"), "./cmd/cofferdam", "-tags", "leaky")
	if err := os.Symlink(filepath.Join(root(t), "bin", "runsc"), filepath.Join(dir, "runsc")); err != nil {
		t.Fatal(err)
	}
	return dir
}
