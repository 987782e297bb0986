package admission

import (
	"net/netip"
	"strconv"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/decide/admission/records"
	"github.com/cofferdam-dev/cofferdam/internal/decide/approval/approvaltest"
	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/decide/dlp"
	"github.com/cofferdam-dev/cofferdam/internal/decide/dlp/secrets"
	"github.com/cofferdam-dev/cofferdam/internal/decide/door"
)

// TestTheEndOfAConnectionOfARunThatIsCutTellsWhatItCarried: its host could not be reached again at last, as a
// guest that chooses the host can have it.
func TestTheEndOfAConnectionOfARunThatIsCutTellsWhatItCarried(t *testing.T) {
	const most = 6
	for what, cut := range map[string]bool{"control": false, "cut": true} {
		t.Run(what, func(t *testing.T) {
			h := newHouse(t, Limits{Records: most})
			h.Unregister("sb1")
			h.policy = parse(t, "network_allowlist: [{host: api.example}]\n")
			must(t, h.Register(h.run()))
			a, err := h.Connect(t.Context(), door.ConnectAsk{Sandbox: "sb1", Name: "api.example", Port: 443, Protocol: door.ProtocolHTTPS, Addresses: []netip.Addr{netip.MustParseAddr("93.184.215.14")}})
			must(t, err)
			if !a.Decision.Allowed() {
				t.Fatalf("INCONCLUSIVE: %+v", a)
			}
			if cut {
				usesItsRecordsUp(t, h, most-1)
			}
			err = h.Disconnected(t.Context(), door.Disconnection{Sandbox: "sb1", Seq: a.Seq, BytesOut: 4711, BytesIn: 1, Problem: "it does not answer", Unreached: true})
			_ = h.SandboxEnded(t.Context(), "sb1", "cut")
			ends := 0
			for _, r := range h.records(t, audit.Finished) {
				if r.Kind == audit.KindNetwork && r.Detail[records.DetailBegan] == strconv.FormatUint(a.Seq, 10) {
					if ends++; r.Detail[records.DetailBytesOut] != "4711" {
						t.Errorf("its end says that %q bytes went out: %+v (%v)", r.Detail[records.DetailBytesOut], r, err)
					}
				}
			}
			if ends != 1 {
				t.Errorf("%d ends", ends)
			}
		})
	}
}

// TestNoPartOfASecretIsKeptOfALongCommand: a command is kept by its beginning, and a key that lies where that ends is
// masked as a whole one is. The control is a key before it.
func TestNoPartOfASecretIsKeptOfALongCommand(t *testing.T) {
	key := "glpat-" + "xQ7vT2mK9pL4nR8sW3yZ"
	for what, before := range map[string]int{"control": 100, "at the cut": maxCommand - 26} {
		t.Run(what, func(t *testing.T) {
			log := &approvaltest.Log{}
			c := New(Config{Log: records.Masked(log, dlp.NewSet(secrets.Rules()...))})
			must(t, c.Register(Run{Sandbox: "sb", Run: "r", Policy: parse(t, "packages: { default: deny }\n")}))
			_, err := c.Command(t.Context(), "sb", "cmd-1", []string{"x", strings.Repeat(" ", before) + key + strings.Repeat(" ", maxCommand)})
			must(t, err)
			for _, r := range log.All() {
				if text := strings.Join(r.Command, ""); strings.Contains(text, key[:12]) {
					t.Errorf("the record has %q", text[strings.Index(text, key[:12]):])
				}
			}
		})
	}
}
