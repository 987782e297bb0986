package admission

import (
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/decide/admission/records"
	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
)

// TestALineHasItsReasons: what was refused for two reasons is one line of a summary, and says both, whether it
// is a tool, a host or a name; what was answered since is no reason.
func TestALineHasItsReasons(t *testing.T) {
	record := func(outcome audit.Outcome, reason, approval string) audit.Record {
		return audit.Record{
			Kind: audit.KindTool, Outcome: outcome, Reason: reason, Approval: approval,
			Detail: map[string]string{records.DetailTool: "order", records.DetailName: "x.example", records.DetailPort: "443"},
		}
	}
	all := []audit.Record{record(audit.Blocked, "no such argument", ""), record(audit.Blocked, "no such argument", ""), record(audit.Blocked, "too many calls", "")}
	var tools toolLines
	var hosts hostLines
	s := summary{}
	for _, r := range all {
		tools.addRecord(r)
		hosts.addRecord(r)
		s.addName(r)
	}
	const want = "no such argument; also: too many calls"
	tool, host := tools.sorted()[0], hosts.sorted()[0]
	if tool.Reason != want || tool.Refused != 3 || host.Reason != want || host.Refused != 3 || s.names[0].Reason != want {
		t.Errorf("%+v, %+v, %+v", tool, host, s.names)
	}
	tools.addRecord(record(audit.Pending, "it waits", "ap-1"))
	if got := tools.sorted()[0].Reason; got == want {
		t.Errorf("a call waits: %s", got)
	}
	tools.addRecord(record(audit.Blocked, "denied", "ap-1"))
	if got := tools.sorted()[0].Reason; got != want+"; also: denied" {
		t.Errorf("it was answered: %s", got)
	}
	tools.addRecord(record(audit.Blocked, "a fourth", ""))
	tools.addRecord(record(audit.Blocked, "a fifth", ""))
	if got := tools.sorted()[0].Reason; got != want+"; also: denied; also: for other reasons, which cofferdam why has" {
		t.Errorf("many: %s", got)
	}
}
