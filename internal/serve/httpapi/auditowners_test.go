package httpapi_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/api"
	"github.com/cofferdam-dev/cofferdam/client"
	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
)

// TestWhoseRecords: each way to ask for records of a user or of a token gives those and no
// others, also both at once, of somebody who has none, and of everybody (the control).
func TestWhoseRecords(t *testing.T) {
	log, c := auditServer(t)
	for i, who := range []struct{ user, token string }{{"ann", ""}, {"ann", "tok-1"}, {"bob", "tok-1"}, {"bob", "tok-2"}, {"", "tok-2"}, {"", ""}} {
		r := audit.Record{
			Kind: audit.KindPackage, Outcome: audit.Installed, Run: fmt.Sprintf("r%d", i), Sandbox: "s1", Ecosystem: "python", Package: fmt.Sprintf("p%d", i), InstalledVersion: "1.0",
			ResolvedBy: "default", User: who.user, Token: who.token,
		}
		if _, err := log.Append(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	records := func(user, token string) (found []string, err error) {
		for line, err := range c.Records(t.Context(), client.RecordFilter{User: user, Token: token}) {
			if err != nil {
				return nil, err
			}
			found = append(found, packageOf(t, line))
		}
		return found, nil
	}
	query := func(user, token string) (found []string, err error) {
		where := map[string][]string{}
		if user != "" {
			where["user"] = []string{user}
		}
		if token != "" {
			where["token"] = []string{token}
		}
		for line, err := range c.AuditQuery(t.Context(), api.AuditQuery{Where: where}) {
			if err != nil {
				return nil, err
			}
			found = append(found, packageOf(t, line))
		}
		return found, nil
	}
	report := func(user, token string) (found []string, err error) {
		r, err := c.AuditReport(t.Context(), "off-allowlist", api.AuditQuestion{User: user, Token: token})
		for _, table := range r.Tables {
			for _, row := range table.Rows {
				found = append(found, strings.TrimPrefix(row["package"], "python "))
			}
		}
		return found, err
	}
	for _, by := range []struct{ user, token, want string }{
		{"ann", "", "p0 p1"},
		{"bob", "", "p2 p3"},
		{"", "tok-1", "p1 p2"},
		{"", "tok-2", "p3 p4"},
		{"ann", "tok-1", "p1"},
		{"ann", "tok-2", ""},
		{"nobody", "", ""},
		{"", "tok-3", ""},
		{"an", "", ""},
		{"", "tok", ""},
		{"", "", "p0 p1 p2 p3 p4 p5"},
	} {
		for name, ask := range map[string]func(user, token string) ([]string, error){"records": records, "query": query, "report": report} {
			found, err := ask(by.user, by.token)
			slices.Sort(found)
			if got := strings.Join(found, " "); err != nil || got != by.want {
				t.Errorf("%s of user %q and token %q: %q, %v; want %q", name, by.user, by.token, got, err, by.want)
			}
		}
	}
}

func packageOf(t *testing.T, line json.RawMessage) string {
	t.Helper()
	var r audit.Record
	if err := json.Unmarshal(line, &r); err != nil {
		t.Fatal(err)
	}
	return r.Package
}
