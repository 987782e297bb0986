package approval

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// The keys that a record's Detail holds, beside its own fields. People's words and names
// (User, Task, the answer's Reason) stand in the record's fields only.
const (
	detailEvent      = "event"
	detailBatch      = "batch" // "ID N/OF"
	detailGroup      = "group"
	detailFiles      = "files"    // JSON, []File
	detailEvidence   = "evidence" // JSON, Evidence
	detailBecause    = "because"
	detailWantedBy   = "wanted_by" // JSON, []string
	detailPolicyName = "policy_name"
	detailExpires    = "expires"
	detailScope      = "scope"
	detailDigests    = "digests"  // with spaces between
	detailRevision   = "revision" // that an answer was given on
	detailEnded      = "ended"
	detailReplacedBy = "replaced_by"
	detailByPerson   = "by_person" // "true"
	detailTree       = "tree"
	detailMembers    = "members" // JSON, []Member
	detailNotes      = "notes"   // JSON, []string
	detailHost       = "name"    // of a host
	detailPort       = "port"
	detailRepository = "repository" // of a push
	detailPush       = "push"       // the digest of what it changes
	detailTool       = "tool"       // of a call
	detailDigest     = "arguments_sha256"
	detailSource     = "tool_source"     // whose tool it is
	detailDefinition = "tool_definition" // the digest of it
	detailArguments  = "arguments"       // of a call's first record; personal, see audit.PersonalDetail
)

// sha256Prefix is before a digest's hexadecimal digits.
const sha256Prefix = "sha256:"

// Events of records that change nothing.
const (
	eventRefused = "refused" // an answer that was not taken
	eventCapped  = "capped"  // a run that asked for too much
	eventUndone  = "undone"  // a record of a batch that was cut short
)

func (c change) outcome() audit.Outcome {
	switch c.event {
	case EventApproved:
		return audit.Approved
	case EventDenied:
		return audit.Denied
	case EventExpired, EventRevoked:
		return audit.Expired
	case EventSuperseded:
		return audit.Superseded
	case EventAsked, EventJoined, eventSeen:
	}
	return audit.Pending
}

// makeRecord makes the record of the change; fromRecord reads it back.
func (c change) makeRecord() (audit.Record, error) {
	r := audit.Record{
		Kind: audit.KindApproval, Outcome: c.outcome(), Approval: c.id,
		Ecosystem: string(c.pkg.Ecosystem), Package: c.pkg.Name, InstalledVersion: c.pkg.Version, SourceURL: c.upstream,
		Run: c.asker.Run, Sandbox: c.asker.Sandbox, Policy: c.asker.Policy, Task: c.asker.Task,
		User: c.asker.User, Token: c.asker.Token, Rule: c.rule, Reason: c.reason,
		Detail: map[string]string{detailEvent: string(c.event)},
	}
	if c.by != "" {
		r.User = c.by
	}
	for key, value := range map[string]string{
		detailGroup: c.group, detailBecause: c.asker.Because, detailPolicyName: c.asker.PolicyName,
		detailScope: string(c.scope), detailDigests: strings.Join(c.digests, " "),
		detailEnded: c.ended, detailReplacedBy: c.replacedBy, audit.DetailOwnerKey: c.asker.OwnerKey, detailTree: c.tree,
	} {
		if value != "" {
			r.Detail[key] = value
		}
	}
	if c.revision > 0 {
		r.Detail[detailRevision] = strconv.FormatUint(c.revision, 10)
	}
	if c.byPerson {
		r.Detail[detailByPerson] = "true"
	}
	if !c.expires.IsZero() {
		r.Detail[detailExpires] = c.expires.UTC().Format(time.RFC3339Nano)
	}
	if c.batch.of > 1 {
		r.Detail[detailBatch] = fmt.Sprintf("%s %d/%d", c.batch.id, c.batch.n, c.batch.of)
	}
	c.putDetails(r.Detail)
	if c.event == EventAsked && c.call.Arguments != "" {
		r.Detail[detailArguments] = c.call.Arguments
	}
	return r, c.recordData(&r)
}

// putDetails puts what is no release into a record's detail, under the keys that records of the
// network and of tools have.
func (m matter) putDetails(detail map[string]string) map[string]string {
	if m.host.isNamed() {
		detail[detailHost], detail[detailPort] = m.host.Name, strconv.Itoa(m.host.Port)
	}
	if m.host.pushes() {
		detail[detailRepository], detail[detailPush] = m.host.Repository, m.host.Push
	}
	if m.call.isNamed() {
		detail[detailTool], detail[detailDigest] = m.call.Tool, strings.TrimPrefix(m.call.Digest, sha256Prefix)
		for key, value := range map[string]string{detailSource: m.call.Source, detailDefinition: m.call.Definition} {
			if value != "" {
				detail[key] = value
			}
		}
	}
	return detail
}

// callOf reads a call back; its arguments are in its first record alone, unless they were
// erased.
func callOf(detail map[string]string) Call {
	if detail[detailTool] == "" {
		return Call{}
	}
	return Call{Tool: detail[detailTool], Source: detail[detailSource], Definition: detail[detailDefinition], Digest: sha256Prefix + detail[detailDigest], Arguments: detail[detailArguments]}
}

// hostOf reads it back.
func hostOf(detail map[string]string) (Host, error) {
	name := detail[detailHost]
	if name == "" {
		return Host{}, nil
	}
	port, err := strconv.Atoi(detail[detailPort])
	if err != nil {
		return Host{}, fmt.Errorf("%s: %w", detailPort, err)
	}
	return Host{Name: name, Port: port, Repository: detail[detailRepository], Push: detail[detailPush]}, nil
}

// recordData puts what has a structure into the Detail.
func (c change) recordData(r *audit.Record) error {
	for _, d := range []struct {
		key   string
		given bool
		value any
	}{
		{detailFiles, len(c.files) > 0, c.files},
		{detailEvidence, c.evidence != nil, c.evidence},
		{detailWantedBy, len(c.asker.WantedBy) > 0, c.asker.WantedBy},
		{detailMembers, len(c.members) > 0, c.members},
		{detailNotes, len(c.notes) > 0, c.notes},
	} {
		if !d.given {
			continue
		}
		text, err := json.Marshal(d.value)
		if err != nil {
			return fault.Wrap(fault.ErrInvalid, err, "the request can't be recorded")
		}
		r.Detail[d.key] = string(text)
	}
	if len(c.files) == 1 {
		for _, digest := range c.files[0].Digests {
			if sum, ok := strings.CutPrefix(digest, sha256Prefix); ok {
				r.SHA256, r.File = sum, c.files[0].Name
			}
		}
	}
	return nil
}

// fromRecord reads a change; ok is false for a record that changes nothing.
func fromRecord(r audit.Record) (c change, ok bool, err error) {
	if r.Kind != audit.KindApproval {
		return change{}, false, nil
	}
	c = change{
		event: EventName(r.Detail[detailEvent]), id: r.Approval, seq: r.Seq, at: r.Time,
		matter: matter{
			pkg:      pkgref.Ref{Ecosystem: pkgref.Ecosystem(r.Ecosystem), Name: r.Package, Version: r.InstalledVersion},
			upstream: r.SourceURL, call: callOf(r.Detail),
		},
		rule: r.Rule, reason: r.Reason, group: r.Detail[detailGroup],
		ended: r.Detail[detailEnded], replacedBy: r.Detail[detailReplacedBy], scope: Scope(r.Detail[detailScope]),
		digests: strings.Fields(r.Detail[detailDigests]), tree: r.Detail[detailTree],
	}
	switch c.event {
	case EventAsked, EventJoined:
		c.asker = Asker{
			Run: r.Run, Sandbox: r.Sandbox, Policy: r.Policy, PolicyName: r.Detail[detailPolicyName],
			User: r.User, Task: r.Task, Because: r.Detail[detailBecause], Token: r.OwnerToken(), OwnerKey: r.Detail[audit.DetailOwnerKey],
		}
		c.byPerson = r.Detail[detailByPerson] == "true"
	case EventApproved, EventDenied, EventRevoked, eventSeen:
		c.by = r.User
	case EventExpired, EventSuperseded:
	default:
		return change{}, false, nil
	}
	if err := c.readData(r.Detail); err != nil {
		return change{}, false, fault.Wrap(fault.ErrInvalid, err, "record %d of the log, about request %q, can't be read", r.Seq, r.Approval)
	}
	return c, true, nil
}

func (c *change) readData(detail map[string]string) error {
	var err error
	if c.host, err = hostOf(detail); err != nil {
		return err
	}
	for key, into := range map[string]any{detailFiles: &c.files, detailEvidence: &c.evidence, detailWantedBy: &c.asker.WantedBy, detailMembers: &c.members, detailNotes: &c.notes} {
		if text := detail[key]; text != "" {
			if err := json.Unmarshal([]byte(text), into); err != nil {
				return fmt.Errorf("%s: %w", key, err)
			}
		}
	}
	if text := detail[detailExpires]; text != "" {
		at, err := time.Parse(time.RFC3339Nano, text)
		if err != nil {
			return fmt.Errorf("%s: %w", detailExpires, err)
		}
		c.expires = at.UTC()
	}
	if text := detail[detailRevision]; text != "" {
		if c.revision, err = strconv.ParseUint(text, 10, 64); err != nil {
			return fmt.Errorf("%s: %w", detailRevision, err)
		}
	}
	if text := detail[detailBatch]; text != "" {
		if c.batch, err = readBatch(text); err != nil {
			return err
		}
	}
	return nil
}

func readBatch(text string) (changeBatch, error) {
	id, place, ok := strings.Cut(text, " ")
	n, of, slash := strings.Cut(place, "/")
	number, err := strconv.Atoi(n)
	total, err2 := strconv.Atoi(of)
	if !ok || !slash || err != nil || err2 != nil || number < 1 || number > total {
		return changeBatch{}, fmt.Errorf("%s: %q is not ID N/OF", detailBatch, text)
	}
	return changeBatch{id: id, n: number, of: total}, nil
}
