package audit

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"testing"

	"go.uber.org/goleak"
)

// appendingProcess names the variable that makes this test binary a process
// which appends, and prints each record's number once it is durable.
const appendingProcess = "COFFERDAM_TEST_APPEND_TO"

func TestMain(m *testing.M) {
	if dir := os.Getenv(appendingProcess); dir != "" {
		appendForEver(dir)
	}
	goleak.VerifyTestMain(m)
}

func appendForEver(dir string) {
	l, err := Open(dir, Options{SegmentBytes: 4_000})
	if err != nil {
		panic(err)
	}
	for range 8 {
		go func() {
			for {
				r, err := l.Append(context.Background(), Record{Kind: KindPackage, Outcome: Served, Run: "killed"})
				if err != nil {
					panic(err)
				}
				fmt.Println(r.Seq)
			}
		}()
	}
	select {}
}

func TestWhatAKilledProcessWasToldIsInTheLog(t *testing.T) {
	dir := t.TempDir()
	next := uint64(0)
	for range 5 {
		appended := killAppender(t, dir, 40)
		l := open(t, dir, Options{})
		have := map[uint64]bool{}
		for _, r := range collect(t, l, Filter{}) {
			have[r.Seq] = true
		}
		for _, seq := range appended {
			if seq < next || !have[seq] {
				t.Errorf("record %d was acknowledged and is not in the log, or came twice", seq)
			}
		}
		next = uint64(len(have))
		must(t, l.Close())
	}
}

// killAppender runs an appending process until it has acknowledged some
// records, kills it, and returns all that it acknowledged.
func killAppender(t *testing.T, dir string, least int) (appended []uint64) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), appendingProcess+"="+dir)
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	for lines := bufio.NewScanner(out); lines.Scan(); {
		var seq uint64
		if _, err := fmt.Sscanf(lines.Text(), "%d", &seq); err != nil {
			continue // the kill cut the line
		}
		appended = append(appended, seq)
		if len(appended) == least {
			must(t, cmd.Process.Kill())
		}
	}
	if cmd.Wait() == nil || len(appended) < least {
		t.Fatalf("the process acknowledged %d records and was not killed", len(appended))
	}
	return appended
}
