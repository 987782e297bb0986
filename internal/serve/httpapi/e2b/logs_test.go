package e2b_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox"
)

// logEntry is an entry of a log as clients of the first version decode it.
type logEntry struct {
	Timestamp                        time.Time
	Message, Level, Logger, Cmd, PID string
	ExitCode, Status, Data, User     string
	Event                            string `json:"event_type"`
}

// logsOf reads a sandbox's log until it has so many ends of commands.
func (h *house) logsOf(id string, ends int) []logEntry {
	h.t.Helper()
	for {
		var answer struct {
			Logs       []struct{ Timestamp, Line string }
			LogEntries []struct {
				Timestamp, Message, Level string
				Fields                    map[string]string
			}
		}
		h.must(200, &answer, h.ann, "GET /sandboxes/"+id+"/logs", "")
		var all []logEntry
		found := 0
		for i, l := range answer.Logs {
			var e logEntry
			if err := json.Unmarshal([]byte(l.Line), &e); err != nil {
				h.t.Fatal(err)
			}
			e.Timestamp, _ = time.Parse(time.RFC3339Nano, l.Timestamp)
			if entry := answer.LogEntries[i]; entry.Message != e.Message || entry.Level != e.Level || entry.Fields["event_type"] != e.Event || entry.Fields["data"] != e.Data || entry.Timestamp != l.Timestamp {
				h.t.Errorf("the line says %+v, the entry %+v", e, entry)
			}
			if e.Event == "process_end" {
				found++
			}
			all = append(all, e)
		}
		if found == ends {
			return all
		}
	}
}

// TestLogs: the commands of a sandbox, as the command line of this protocol reads them:
// each began, wrote and ended; what goes to a terminal is not told.
func TestLogs(t *testing.T) {
	h := newHouse(t)
	id := h.create("").SandboxID
	for _, c := range []sandbox.Command{
		{Argv: []string{"/bin/sh", "-c", `printf 'out \377'; echo no >&2; exit 3`}},
		{Argv: []string{"/bin/true"}, User: "root"},
		{Argv: []string{"/bin/sh", "-c", "echo typed"}, PTY: &channel.WindowSize{Rows: 24, Cols: 80}},
	} {
		if _, err := h.life.Start(t.Context(), id, c); err != nil {
			t.Fatal(err)
		}
	}
	lines := map[string]int{}
	all := h.logsOf(id, 3)
	for i, e := range all {
		lines[fmt.Sprintf("%s %s %s %s", e.Level, e.Event, e.User, strings.TrimSpace(e.Data+e.ExitCode))]++
		if e.Logger != "process" || e.PID == "" || !strings.Contains(e.Message, "rocess") || (e.Cmd == "") != (e.Data != "") {
			t.Errorf("%+v", e)
		}
		if i > 0 && e.Timestamp.Before(all[i-1].Timestamp) {
			t.Error("not in their order")
		}
	}
	for line, times := range map[string]int{
		"info process_start user ": 2, "info process_start root ": 1, "info stdout user out \uFFFD": 1, "info stderr user no": 1,
		"warn process_end user 3": 1, "info process_end root 0": 1, "info process_end user 0": 1,
	} {
		if lines[line] != times {
			t.Errorf("%q is there %d times, want %d: %v", line, lines[line], times, lines)
		}
	}
	if strings.Contains(fmt.Sprint(all), "typed\r") {
		t.Error("what was typed is told")
	}

	end := strconv.FormatInt(all[len(all)-1].Timestamp.UnixMilli()+1, 10)
	var entries struct {
		Logs []struct{ Message, Timestamp string }
	}
	for query, want := range map[string]int{
		"": 8, "?level=warn": 1, "?level=error": 0, "?search=true": 2, "?search=no%0A": 1, "?limit=1": 1, "?limit=0": 0,
		"?cursor=" + end: 0, "?cursor=" + end + "&direction=backward": 8, "?cursor=0&direction=backward": 0,
	} {
		if h.must(200, &entries, h.ann, "GET /v2/sandboxes/"+id+"/logs"+query, ""); len(entries.Logs) != want {
			t.Errorf("%s: %+v", query, entries)
		}
	}
	h.must(200, &entries, h.ann, "GET /v2/sandboxes/"+id+"/logs?direction=backward", "")
	if !slices.IsSortedFunc(entries.Logs, func(a, b struct{ Message, Timestamp string }) int { return strings.Compare(b.Timestamp, a.Timestamp) }) {
		t.Errorf("backward: %+v", entries)
	}
	for query, sentence := range map[string]string{"start=x": "not a time", "limit=-1": "from 0 to", "direction=up": "forward or backward", "level=x": "debug"} {
		h.refused(400, sentence, h.ann, "GET /sandboxes/"+id+"/logs?"+query, "")
	}
	h.refused(404, "there is no sandbox", h.bob, "GET /sandboxes/"+id+"/logs", "")
	h.must(204, nil, h.ann, "DELETE /sandboxes/"+id, "")
	h.refused(404, "there is no sandbox", h.ann, "GET /sandboxes/"+id+"/logs", "")
}

// TestLongLogs: an answer has a bounded size, and who asks again from after its last
// entry on reads all of it, as `sandbox logs --follow` does.
func TestLongLogs(t *testing.T) {
	h := newHouse(t)
	id := h.create("").SandboxID
	const last = 1_700_000 // 12 MB
	if _, err := h.life.Start(t.Context(), id, sandbox.Command{Argv: []string{"seq", strconv.Itoa(last)}}); err != nil {
		t.Fatal(err)
	}
	for ended := false; !ended; {
		commands, err := h.life.Commands(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		ended = commands[0].Exit != nil
	}
	type entry struct {
		Timestamp time.Time
		Fields    map[string]string
	}
	var all []entry
	answers, from := 0, int64(0)
	for ended := false; !ended; answers++ {
		var page struct{ Logs []entry }
		h.must(200, &page, h.ann, "GET /v2/sandboxes/"+id+"/logs?cursor="+strconv.FormatInt(from, 10), "")
		size := 0
		for _, e := range page.Logs {
			size += len(e.Fields["data"])
			ended = ended || e.Fields["event_type"] == "process_end"
		}
		if size > 6<<20 {
			t.Errorf("an answer has %d bytes", size)
		}
		all = append(all, page.Logs...)
		from = all[len(all)-1].Timestamp.UnixMilli() + 1
		if len(page.Logs) == 1000 && !ended { // it may have ended within a millisecond
			from--
			all = slices.DeleteFunc(all, func(e entry) bool { return e.Timestamp.UnixMilli() == from })
		}
	}
	var text strings.Builder
	for _, e := range all {
		text.WriteString(e.Fields["data"])
	}
	n := 0
	for line := range strings.Lines(text.String()) {
		if n++; line != strconv.Itoa(n)+"\n" {
			t.Fatalf("the line %d is %q", n, line)
		}
	}
	if n != last || answers < 3 {
		t.Errorf("%d lines in %d answers, want %d in several", n, answers, last)
	}
}
