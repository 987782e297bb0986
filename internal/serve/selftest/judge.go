package selftest

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
)

// clockSlack is how far the log's clock and ours may be apart.
const clockSlack = 2 * time.Second

// judgeLinks checks all links, in the order of an install's life.
func judgeLinks(e *Evidence) []Link {
	var links []Link
	for _, l := range []struct {
		name  string
		check func(*Evidence) (string, error)
	}{
		{"clients are answered as the policy says", judgeClients},
		{"the log can be read", readable},
		{"every step of the run is on record, in order", everyStep},
		{"what was served was recorded before", servedOnRecord},
		{"the refusal is on record", refusalOnRecord},
		{"the held request, its approval and the install are one story", approvalOnRecord},
		{"what is on the disk is on record", diskOnRecord},
		{"nothing else is on record", nothingElse},
		{"the clock is right", clockRight},
		{"the export has every record whole", exportWhole},
		{"the log verifies", verifies},
		{"every record is proved", proved},
	} {
		detail, err := l.check(e)
		if err != nil {
			detail = err.Error()
		}
		links = append(links, Link{Name: l.name, Holds: err == nil, Detail: detail})
	}
	return links
}

// judgeClients looks at what the clients in the sandbox got, and what the
// registry sent: nothing of the log.
func judgeClients(e *Evidence) (string, error) {
	steps := drillPlan()
	if len(e.Commands) != len(steps) {
		return "", fmt.Errorf("%d of %d commands were run", len(e.Commands), len(steps))
	}
	for i, c := range e.Commands {
		if (c.Exit == 0) != steps[i].succeeds {
			return "", fmt.Errorf("%s ended with %d: %s", strings.Join(c.Argv, " "), c.Exit, lastLine(c.Output))
		}
	}
	if e.Request == "" || !strings.Contains(e.Commands[approveAfter].Output, e.Request) {
		return "", fmt.Errorf("the client of the held package was not shown its request %q: %s", e.Request, lastLine(e.Commands[approveAfter].Output))
	}
	if out := e.Commands[len(steps)-1].Output; strings.TrimSpace(out) != "allowed held" {
		return "", fmt.Errorf("the installed packages are not those of the registry: %s", lastLine(out))
	}
	if n := e.Releases[refused].Sent; n != 0 {
		return "", fmt.Errorf("the refused file left the registry %d times", n)
	}
	return "installed, refused, held with " + e.Request + ", and installed once approved", nil
}

func lastLine(s string) string {
	s = strings.TrimSpace(s)
	if len(s) > 300 {
		s = "..." + s[len(s)-300:]
	}
	return fmt.Sprintf("%q", s)
}

func readable(e *Evidence) (string, error) {
	if e.RecordsErr != nil {
		return "", e.RecordsErr
	}
	for i, r := range e.Records {
		if r.Seq != uint64(i) {
			return "", fmt.Errorf("record %d is missing: number %d stands in its place", i, r.Seq)
		}
	}
	return fmt.Sprintf("%d records, numbered without a gap", len(e.Records)), nil
}

// clockRight compares the log's times with our own clock.
func clockRight(e *Evidence) (string, error) {
	var last time.Time
	for _, r := range e.Records {
		switch {
		case r.Time.Before(e.Began.Add(-clockSlack)) || r.Time.After(e.Ended.Add(clockSlack)):
			return "", fmt.Errorf("record %d is of %s, and the self-test ran from %s to %s", r.Seq, formatTime(r.Time), formatTime(e.Began), formatTime(e.Ended))
		case r.Time.Before(last):
			return "", fmt.Errorf("record %d is of %s, before the one in front of it", r.Seq, formatTime(r.Time))
		}
		last = r.Time
	}
	return fmt.Sprintf("all times lie between %s and %s", formatTime(e.Began), formatTime(e.Ended)), nil
}

func formatTime(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// exportWhole compares the export with the records, field by field.
func exportWhole(e *Evidence) (string, error) {
	if e.ExportErr != nil {
		return "", e.ExportErr
	}
	lines := bufio.NewScanner(bytes.NewReader(e.Export))
	lines.Buffer(nil, 4<<20)
	n := 0
	for lines.Scan() {
		if n >= len(e.Records) {
			break // what came after our look at the log
		}
		var r audit.Record
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			return "", fmt.Errorf("line %d is no record: %w", n+1, err)
		}
		if field := differs(e.Records[n], r); field != "" {
			return "", fmt.Errorf("line %d has another %s than record %d", n+1, field, e.Records[n].Seq)
		}
		n++
	}
	if err := lines.Err(); err != nil {
		return "", err
	}
	if n != len(e.Records) {
		return "", fmt.Errorf("it has %d of %d records", n, len(e.Records))
	}
	return fmt.Sprintf("%d lines, each field as in the log", n), nil
}

// differs names the first field in which two records differ; "": none.
func differs(a, b audit.Record) string {
	if !a.Time.Equal(b.Time) {
		return "timestamp"
	}
	b.Time = a.Time
	va, vb := reflect.ValueOf(a), reflect.ValueOf(b)
	for i := range va.NumField() {
		if !sameValue(va.Field(i), vb.Field(i)) {
			name, _, _ := strings.Cut(va.Type().Field(i).Tag.Get("json"), ",")
			return name
		}
	}
	return ""
}

// sameValue takes an empty list or mapping for none.
func sameValue(a, b reflect.Value) bool {
	if k := a.Kind(); (k == reflect.Slice || k == reflect.Map) && a.Len()+b.Len() == 0 {
		return true
	}
	return reflect.DeepEqual(a.Interface(), b.Interface())
}

func verifies(e *Evidence) (string, error) {
	switch v := e.Verdict; {
	case e.VerifyErr != nil:
		return "", e.VerifyErr
	case !v.Sound && len(v.Problems) > 0:
		return "", errors.New(v.Problems[0].What)
	case !v.Sound:
		return "", errors.New("it is not sound")
	case v.Records < uint64(len(e.Records)):
		return "", fmt.Errorf("its files have %d records, its readers saw %d", v.Records, len(e.Records))
	case v.Covered < v.Records:
		return "", fmt.Errorf("the last checkpoint covers %d of %d records", v.Covered, v.Records)
	}
	return fmt.Sprintf("%d records under %d checkpoints", e.Verdict.Records, e.Verdict.Checkpoints), nil
}

func proved(e *Evidence) (string, error) {
	if e.ProofErr != nil {
		return "", e.ProofErr
	}
	if e.Proofs != len(e.Records) || e.Proofs == 0 {
		return "", fmt.Errorf("%d of %d records are proved", e.Proofs, len(e.Records))
	}
	return fmt.Sprintf("%d proofs, checked with the public key alone", e.Proofs), nil
}
