package records_test

import (
	"context"
	"encoding/json"
	"iter"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/decide/admission/records"
	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/decide/dlp"
	"github.com/cofferdam-dev/cofferdam/internal/decide/dlp/secrets"
)

// memory is a log in memory.
type memory struct{ all []audit.Record }

func (m *memory) Append(_ context.Context, r audit.Record) (audit.Record, error) {
	m.all = append(m.all, r)
	return r, nil
}

func (m *memory) Records(context.Context, audit.Filter) iter.Seq2[audit.Record, error] { return nil }

func (m *memory) Close() error { return nil }

// TestMasked: no free text of a record has a secret, and the caller's stays as it is.
func TestMasked(t *testing.T) {
	const token, masked = "glpat-" + "aB3dE6gH9kaB3dE6gH9k", "**************************"
	log := &memory{}
	command, detail := []string{"curl", "-H", "PRIVATE-TOKEN: " + token}, map[string]string{"name": token, "digest": "sha256:0f1e2d"}
	given := audit.Record{
		Kind: audit.KindCommand, Command: command, Detail: detail, Reason: "not " + token, Task: token, File: token + ".tgz", SourceURL: "https://a.example/" + token,
		RequestedVersion: token, InstalledVersion: token, Package: token, Rule: "x." + token, Withheld: []audit.WithheldRange{{From: "1"}, {From: token, To: token, Rule: token, Reason: token}}, SHA256: strings.Repeat("0f", 32), RequestID: "abcdefgh",
	}
	if _, err := records.Masked(log, dlp.NewSet(secrets.Rules()...)).Append(t.Context(), given); err != nil {
		t.Fatal(err)
	}
	if given.Withheld[1].From != token {
		t.Errorf("the caller's own were changed: %+v", given.Withheld)
	}
	if command[2] != "PRIVATE-TOKEN: "+token || detail["name"] != token {
		t.Errorf("the caller's own were changed: %q, %q", command, detail)
	}
	text, err := json.Marshal(log.all)
	if err != nil || strings.Contains(string(text), token) || strings.Count(string(text), masked) != 14 {
		t.Errorf("%s, %v", text, err)
	}
	if got := log.all[0]; got.Command[0] != "curl" || got.Detail["digest"] != "sha256:0f1e2d" || got.SHA256 != given.SHA256 || got.RequestID != given.RequestID {
		t.Errorf("more was changed: %+v", got)
	}
}
