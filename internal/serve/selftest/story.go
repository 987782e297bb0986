package selftest

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
)

// findRecords returns the records of a kind and outcome about a package, "" for those
// about none.
func (e *Evidence) findRecords(kind audit.Kind, outcome audit.Outcome, name string) []audit.Record {
	var found []audit.Record
	for _, r := range e.Records {
		if r.Kind == kind && r.Outcome == outcome && r.Package == name && r.Run == e.Run {
			found = append(found, r)
		}
	}
	return found
}

func (e *Evidence) findOne(kind audit.Kind, outcome audit.Outcome, name string) (audit.Record, error) {
	found := e.findRecords(kind, outcome, name)
	if len(found) != 1 {
		return audit.Record{}, fmt.Errorf("there are %d records %s %s of %q, and there must be 1", len(found), kind, outcome, name)
	}
	return found[0], nil
}

// field is what a record must have in one place.
type field struct{ name, got, want string }

// compareFields compares fields, all of them.
func compareFields(r audit.Record, fields ...field) error {
	var wrong []string
	for _, f := range fields {
		if f.got != f.want {
			wrong = append(wrong, fmt.Sprintf("%s is %q and must be %q", f.name, f.got, f.want))
		}
	}
	if len(wrong) > 0 {
		return fmt.Errorf("record %d (%s %s): %s", r.Seq, r.Kind, r.Outcome, strings.Join(wrong, "; "))
	}
	return nil
}

// runFields are the fields that every record of the run has.
func (e *Evidence) runFields(r audit.Record) []field {
	return []field{
		{"agent_run_id", r.Run, e.Run},
		{"sandbox", r.Sandbox, e.Sandbox},
		{"policy_digest", r.Policy, e.Policy},
		{"a request_id", strconv.FormatBool(r.RequestID != ""), "true"},
		{"a timestamp", strconv.FormatBool(!r.Time.IsZero()), "true"},
	}
}

// artifact are the fields of a record about a release's file: with those of ours
// the nine that every install record has, and more.
func (e *Evidence) artifact(r audit.Record, role string, by policy.ResolvedBy) []field {
	p := e.Releases[role]
	return append(e.runFields(r),
		field{"ecosystem", r.Ecosystem, "python"}, field{"package_name", r.Package, p.Name},
		field{"requested_version", r.RequestedVersion, "==" + version}, field{"requested_claimed", strconv.FormatBool(r.RequestedClaimed), "true"},
		field{"installed_version", r.InstalledVersion, version}, field{"source_url", r.SourceURL, p.URL},
		field{"package_hash_sha256", r.SHA256, p.SHA256}, field{"resolved_by", r.ResolvedBy, string(by)},
		field{"file", r.File, p.File}, field{"size", strconv.FormatInt(r.Size, 10), strconv.Itoa(len(p.Bytes))},
	)
}

// everyStep looks for the sandbox and its commands, whose ends frame all else.
func everyStep(e *Evidence) (string, error) {
	begun, err := e.findOne(audit.KindSandbox, audit.Started, "")
	if err != nil {
		return "", err
	}
	ended, err := e.findOne(audit.KindSandbox, audit.Finished, "")
	if err != nil {
		return "", err
	}
	if err := compareFields(begun, append(e.runFields(begun), field{"task", begun.Task, e.Task}, field{"user", begun.User, e.User})...); err != nil {
		return "", err
	}
	if err := compareFields(ended, e.runFields(ended)...); err != nil {
		return "", err
	}
	starts, ends := e.findRecords(audit.KindCommand, audit.Started, ""), e.findRecords(audit.KindCommand, audit.Finished, "")
	if len(starts) != len(e.Commands) || len(ends) != len(e.Commands) {
		return "", fmt.Errorf("%d commands were run; %d have begun and %d have ended on record", len(e.Commands), len(starts), len(ends))
	}
	last := begun.Seq
	for i, c := range e.Commands {
		start, end := starts[i], ends[i]
		if !slices.Equal(start.Command, c.Argv) || end.Exit == nil || *end.Exit != c.Exit {
			return "", fmt.Errorf("command %d was %q and ended with %d; records %d and %d say other", i+1, strings.Join(c.Argv, " "), c.Exit, start.Seq, end.Seq)
		}
		if start.Seq <= last || end.Seq <= start.Seq {
			return "", fmt.Errorf("the records of command %d are not in the order of what happened", i+1)
		}
		if err := compareFields(start, e.runFields(start)...); err != nil {
			return "", err
		}
		last = end.Seq
	}
	if ended.Seq <= last {
		return "", errors.New("the sandbox has ended on record before its last command")
	}
	return fmt.Sprintf("a sandbox and %d commands, from record %d to %d", len(starts), begun.Seq, ended.Seq), nil
}

// servedOnRecord: each file that the registry gave away and a client has is
// served by one record, before the client could install it.
func servedOnRecord(e *Evidence) (string, error) {
	for role, by := range map[string]policy.ResolvedBy{allowed: policy.ByAllowlist, held: policy.ByApproval} {
		if e.Releases[role].Sent == 0 {
			return "", fmt.Errorf("%s was installed, and the registry has not sent it", e.Releases[role].Name)
		}
		r, err := e.findOne(audit.KindPackage, audit.Served, e.Releases[role].Name)
		if err != nil {
			return "", err
		}
		if err := compareFields(r, append(e.artifact(r, role, by), field{"guest_claimed", strconv.FormatBool(r.GuestClaimed), "false"})...); err != nil {
			return "", err
		}
		if r.Rule == "" {
			return "", fmt.Errorf("record %d has no rule", r.Seq)
		}
	}
	if n := len(e.findRecords(audit.KindPackage, audit.Served, e.Releases[refused].Name)); n > 0 {
		return "", errors.New("the refused package is served on record")
	}
	return "two files, with every field of an install record", nil
}

// refusalOnRecord: what was refused is blocked, or withheld from the index.
func refusalOnRecord(e *Evidence) (string, error) {
	p := e.Releases[refused]
	found := slices.Concat(e.findRecords(audit.KindPackage, audit.Blocked, p.Name), e.findRecords(audit.KindPackage, audit.Withheld, p.Name))
	if len(found) == 0 {
		return "", fmt.Errorf("there is no record that %s was refused", p.Name)
	}
	for _, r := range found {
		if err := compareFields(r, append(e.runFields(r),
			field{"ecosystem", r.Ecosystem, "python"}, field{"resolved_by", r.ResolvedBy, string(policy.ByBlocklist)},
			field{"a reason", strconv.FormatBool(r.Reason != ""), "true"}, field{"a rule", strconv.FormatBool(r.Rule != ""), "true"},
		)...); err != nil {
			return "", err
		}
	}
	return fmt.Sprintf("%s, by %s", found[0].Outcome, found[0].Rule), nil
}

// approvalOnRecord follows the held package: asked, approved, served.
func approvalOnRecord(e *Evidence) (string, error) {
	name := e.Releases[held].Name
	var asked, answered, waited []audit.Record
	for _, r := range e.Records {
		switch {
		case r.Package != name:
		case r.Kind == audit.KindApproval && r.Outcome == audit.Pending:
			asked = append(asked, r)
		case r.Kind == audit.KindApproval && r.Outcome == audit.Approved:
			answered = append(answered, r)
		case r.Kind == audit.KindPackage && r.Outcome == audit.Pending:
			waited = append(waited, r)
		}
	}
	served := e.findRecords(audit.KindPackage, audit.Served, name)
	if len(asked) == 0 || len(answered) != 1 || len(waited) == 0 || len(served) != 1 {
		return "", fmt.Errorf("it is asked for %d times, answered %d times, waited for %d times and served %d times on record", len(asked), len(answered), len(waited), len(served))
	}
	for _, r := range slices.Concat(asked, answered, waited, served) {
		if err := compareFields(r, field{"approval_id", r.Approval, e.Request}, field{"installed_version", r.InstalledVersion, version}); err != nil {
			return "", err
		}
	}
	a := answered[0]
	if a.User == "" || a.Seq <= asked[0].Seq || served[0].Seq <= a.Seq {
		return "", fmt.Errorf("records %d, %d and %d are not asked for, answered by somebody, served", asked[0].Seq, a.Seq, served[0].Seq)
	}
	return fmt.Sprintf("%s: asked in record %d, approved in %d, served in %d", e.Request, asked[0].Seq, a.Seq, served[0].Seq), nil
}

// diskOnRecord: both packages are installed on record, joined with what was
// served, and nothing that was not.
func diskOnRecord(e *Evidence) (string, error) {
	for role, by := range map[string]policy.ResolvedBy{allowed: policy.ByAllowlist, held: policy.ByApproval} {
		name := e.Releases[role].Name
		r, err := e.findOne(audit.KindPackage, audit.Installed, name)
		if err != nil {
			return "", err
		}
		if err := compareFields(r, append(e.artifact(r, role, by),
			field{"guest_claimed", strconv.FormatBool(r.GuestClaimed), "true"}, field{"a path", strconv.FormatBool(r.Detail["path"] != ""), "true"},
		)...); err != nil {
			return "", err
		}
		served := e.findRecords(audit.KindPackage, audit.Served, name)
		if len(served) != 1 || served[0].Seq >= r.Seq {
			return "", fmt.Errorf("record %d says that %s was installed, and no record before that it was served", r.Seq, name)
		}
	}
	return "two packages, each with the record that it was served by", nil
}

// nothingElse: no other package, and no alarm.
func nothingElse(e *Evidence) (string, error) {
	known := map[string]bool{}
	for _, p := range e.Releases {
		known[p.Name] = true
	}
	for _, r := range e.Records {
		switch {
		case r.ConcernsAlarm() || r.Detail["unaccounted"] != "":
			return "", fmt.Errorf("record %d is an alarm: %s", r.Seq, r.Reason)
		case r.Outcome == audit.Exceeded || r.Outcome == audit.Failed || r.Outcome == audit.Aborted:
			return "", fmt.Errorf("record %d says %s: %s", r.Seq, r.Outcome, r.Reason)
		case r.Package != "" && !known[r.Package]:
			return "", fmt.Errorf("record %d is about %q, which nobody asked for", r.Seq, r.Package)
		}
	}
	return "no other package, no alarm", nil
}
