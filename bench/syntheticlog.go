package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
)

// Shape of a synthetic log: runs of runRecords records, like those of real ones.
const (
	runRecords    = 100
	segmentOfLog  = 100_000 // records
	projectsOfLog = 400
	policiesOfLog = 12
)

// synthesizeLog writes a log of n records as an appender would have left it, but
// for tree and checkpoints. A few of its runs are what the reports look for.
func synthesizeLog(dir string, n int) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	var file *os.File
	var out *bufio.Writer
	for i := range n {
		if i%segmentOfLog == 0 {
			if err := closeSegment(file, out); err != nil {
				return err
			}
			var err error
			if file, err = os.OpenFile(filepath.Join(dir, fmt.Sprintf("%012d.jsonl", i)), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600); err != nil {
				return err
			}
			out = bufio.NewWriterSize(file, 1<<20)
		}
		r := syntheticRecord(i)
		r.Seq, r.Time = uint64(i), start.Add(time.Duration(i)*20*time.Second)
		enc := json.NewEncoder(out)
		enc.SetEscapeHTML(false)
		if err := enc.Encode(r); err != nil {
			return err
		}
	}
	return closeSegment(file, out)
}

func closeSegment(file *os.File, out *bufio.Writer) error {
	if file == nil {
		return nil
	}
	if err := out.Flush(); err != nil {
		return err
	}
	return file.Close()
}

// syntheticRecord is one of a run's: it starts, commands come and go, files are
// served, then found installed; now and then something is refused.
func syntheticRecord(i int) audit.Record {
	run, step := i/runRecords, i%runRecords
	r := audit.Record{
		Run: fmt.Sprintf("run-%06d", run), Sandbox: fmt.Sprintf("sb-%08x", run*2654435761), Policy: fmt.Sprintf("sha256:%064x", run%policiesOfLog),
		RequestID: fmt.Sprintf("rq%08x", i),
	}
	switch {
	case step == 0:
		r.Kind, r.Outcome, r.User, r.Task = audit.KindSandbox, audit.Started, "agent", fmt.Sprintf("Make the figures of quarter %d", run%97)
		r.Detail = map[string]string{"template": "debian", "policy_source": "/etc/policies/analysis.yaml", "lockfiles_digest": fmt.Sprintf("sha256:%064x", 77+run%5)}
	case step == runRecords-1:
		r.Kind, r.Outcome, r.User, r.Reason = audit.KindSandbox, audit.Finished, "agent", "it was destroyed"
	case step == 1, step == runRecords-2:
		code := 0
		r.Kind, r.Outcome, r.Command = audit.KindCommand, audit.Started, []string{"pip", "install", "--requirement", fmt.Sprintf("requirements-%d.txt", run%50)}
		if step != 1 {
			r.Outcome, r.Exit = audit.Finished, &code
		}
	case step < 90:
		syntheticPackage(&r, run, step)
	default:
		syntheticPackage(&r, run, step)
		r.Outcome, r.ResolvedBy, r.Rule, r.Reason, r.SHA256 = audit.Blocked, "default", "packages.default", "it is not on the allowlist", ""
	}
	return r
}

// syntheticPackage serves in the first half of a run what the second half finds.
func syntheticPackage(r *audit.Record, run, step int) {
	served := step < 46
	if !served {
		step -= 44
	}
	n := (run*7 + step) % projectsOfLog
	version := fmt.Sprintf("%d.%d.0", 1+n%5, (run/500)%10)
	r.Kind, r.Outcome, r.Ecosystem, r.Package = audit.KindPackage, audit.Served, "python", fmt.Sprintf("project-%03d", n)
	r.RequestedVersion, r.InstalledVersion, r.File = ">=1.0", version, fmt.Sprintf("%s-%s-py3-none-any.whl", r.Package, version)
	r.SourceURL = fmt.Sprintf("https://files.example/packages/%03d/%s", n, r.File)
	r.SHA256, r.Size = fmt.Sprintf("%056x%08x", n, run/500), int64(10_000+n)
	r.ResolvedBy, r.Rule, r.Reason = "allowlist", "allowed_packages.python."+r.Package, r.Package+" is on the allowlist"
	if !served {
		r.Outcome, r.GuestClaimed, r.Reason = audit.Installed, true, ""
		r.Detail = map[string]string{"path": "/workspace/.venv/lib/python3.13/site-packages/" + r.Package}
	}
	if step != 20 {
		return
	}
	switch { // what the reports look for
	case run%1000 == 3 && !served:
		r.ResolvedBy, r.Rule, r.SHA256, r.SourceURL = "", "", "", ""
		r.Detail["unaccounted"] = "true"
	case run%1000 == 4:
		r.RequestedVersion = ">=9"
	case run%1000 == 5:
		r.ResolvedBy, r.Rule = "default", "packages.default"
	case run%1000 == 6 && served:
		r.SourceURL = "https://other.example/" + r.File
	}
}
