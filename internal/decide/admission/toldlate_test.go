package admission

import (
	"net/netip"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/decide/approval/approvaltest"
	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/decide/door"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// TestRequestsToldLate: what became of a request is on record however many connections have ended
// since its own did, as a held push ends it, and once. One of a connection that there
// never was, or of another sandbox's, is not taken.
func TestRequestsToldLate(t *testing.T) {
	h := newHouse(t, Limits{})
	run := h.run()
	run.Sandbox, run.Policy = "sb9", parse(t, "network_allowlist: [ { host: api.example, methods: [GET, POST] } ]\n")
	must(t, h.Register(run))
	connect := func() uint64 {
		a, err := h.Connect(t.Context(), door.ConnectAsk{Sandbox: "sb9", Name: "api.example", Port: 443, Protocol: door.ProtocolHTTPS, Addresses: []netip.Addr{netip.MustParseAddr("93.184.216.34")}, Judged: true})
		must(t, err)
		if !a.Decision.Allowed() {
			t.Fatal(a.Decision)
		}
		return a.Seq
	}
	first := connect()
	must(t, h.Disconnected(t.Context(), door.Disconnection{Sandbox: "sb9", Seq: first}))
	for range 600 {
		must(t, h.Disconnected(t.Context(), door.Disconnection{Sandbox: "sb9", Seq: connect()}))
	}
	for number, path := range []string{"/one", "/two", "/two"} {
		done := door.RequestsDone{Sandbox: "sb9", Connection: first, Requests: []door.RequestDone{{Number: uint64(min(number+1, 2)), Method: "POST", Path: path, Status: 200}}}
		must(t, h.Requested(t.Context(), done))
	}
	found := map[string]int{}
	for _, r := range h.records(t, audit.Finished) {
		if request := r.Detail["request"]; request != "" {
			found[request]++
		}
	}
	if len(found) != 2 || found["POST /one"] != 1 || found["POST /two"] != 1 {
		t.Errorf("on record are %v", found)
	}
	for sandbox, seq := range map[string]uint64{"sb9": 1 << 40, "sb1": first} {
		done := door.RequestsDone{Sandbox: sandbox, Connection: seq, Requests: []door.RequestDone{{Number: 9, Method: "GET", Path: "/none"}}}
		if err := h.Requested(t.Context(), done); fault.KindOf(err) != fault.KindOf(fault.ErrNotFound) {
			t.Errorf("of %s, record %d: %v", sandbox, seq, err)
		}
	}
}

// TestRequestsToldAfterTheEnd: what became of a request is on record also where its sandbox has
// ended before that is told, once, as its connection's; other sandboxes get none.
func TestRequestsToldAfterTheEnd(t *testing.T) {
	h := newHouse(t, Limits{})
	run := h.run()
	run.Sandbox, run.Token, run.Policy = "sb9", "t-9", parse(t, "network_allowlist: [ { host: api.example, methods: [GET, POST] } ]\n")
	must(t, h.Register(run))
	a, err := h.Connect(t.Context(), door.ConnectAsk{Sandbox: "sb9", Name: "api.example", Port: 443, Protocol: door.ProtocolHTTPS, Addresses: []netip.Addr{netip.MustParseAddr("93.184.216.34")}, Judged: true})
	must(t, err)
	must(t, h.SandboxEnded(t.Context(), "sb9", "stopped"))
	h.Unregister("sb9")
	tell := func(sandbox string, seq, number uint64) error {
		return h.Requested(t.Context(), door.RequestsDone{Sandbox: sandbox, Connection: seq, Requests: []door.RequestDone{{Number: number, Method: "POST", Path: "/last", Status: 200}}})
	}
	for range 2 {
		must(t, tell("sb9", a.Seq, 1))
	}
	var found []audit.Record
	for _, r := range h.records(t, audit.Finished) {
		if r.Detail["request"] != "" {
			found = append(found, r)
		}
	}
	if len(found) != 1 || found[0].Detail["request"] != "POST /last" || found[0].Sandbox != "sb9" || found[0].Run != run.Run || found[0].Token != "t-9" || found[0].Policy == "" || found[0].Detail["name"] != "api.example" {
		t.Errorf("on record are %+v", found)
	}
	for sandbox, seq := range map[string]uint64{"sb9": a.Seq + 1000, "sb8": a.Seq} {
		if err := tell(sandbox, seq, 2); fault.KindOf(err) != fault.KindOf(fault.ErrNotFound) {
			t.Errorf("of %s, record %d: %v", sandbox, seq, err)
		}
	}
}

// TestRequestsPastTheirQuotaAreToldAfterTheEnd: that there were more than are recorded one by one is on record,
// once, also where the sandbox has ended before they are told. The control is as many as there may be.
func TestRequestsPastTheirQuotaAreToldAfterTheEnd(t *testing.T) {
	const most = 2
	for what, more := range map[string]int{"control": 0, "more": 3} {
		t.Run(what, func(t *testing.T) {
			log := &approvaltest.Log{}
			began, err := log.Append(t.Context(), audit.Record{
				Kind: audit.KindNetwork, Outcome: audit.Started, Run: "r", Sandbox: "sb", Token: "tk", Detail: map[string]string{"name": "api.example", "port": "443"},
			})
			must(t, err)
			var gone afterlife
			for n := range most + more {
				done := door.RequestsDone{Sandbox: "sb", Connection: began.Seq, Requests: []door.RequestDone{{Number: uint64(n + 1), Method: "GET", Path: "/"}}}
				must(t, gone.requested(t.Context(), log, done, most))
			}
			requests, exceeded := 0, 0
			for _, r := range log.All() {
				switch {
				case r.Outcome == audit.Finished:
					requests++
				case r.Outcome == audit.Exceeded && r.Rule == ruleRequestsQuota && r.Token == "tk":
					exceeded++
				}
			}
			if requests != most || exceeded != min(more, 1) {
				t.Errorf("%d requests are on record, and %d times that there were more", requests, exceeded)
			}
		})
	}
}
