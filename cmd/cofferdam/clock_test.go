package main

import (
	"encoding/json"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cofferdam-dev/cofferdam/api"
	"github.com/cofferdam-dev/cofferdam/client"
	"github.com/cofferdam-dev/cofferdam/internal/serve/config"
)

// TestAClockIsAcceptedAsItWasSeen: where nobody can be asked, the host's clock is accepted only by the time that somebody has
// seen. The controls are that time, and a clock that has not jumped.
func TestAClockIsAcceptedAsItWasSeen(t *testing.T) {
	dir, err := os.MkdirTemp("", "ck") //nolint:usetesting // a socket's path must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	t.Setenv("COFFERDAM_STATE", filepath.Join(dir, "s"))
	t.Setenv("COFFERDAM_RUNTIME", filepath.Join(dir, "r"))
	t.Setenv(client.EnvHost, "")
	paths, err := config.DefaultPaths()
	if err == nil {
		err = paths.Make()
	}
	if err != nil {
		t.Fatal(err)
	}
	host := time.Date(2027, 3, 4, 5, 6, 7, 0, time.Local)
	jumped, accepted := true, false
	tell := func(w http.ResponseWriter) {
		_ = json.NewEncoder(w).Encode(api.Clock{Time: host.AddDate(-1, 0, 0), Host: host, Jumped: jumped})
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/version", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(`{"version":"1"}`)) })
	mux.HandleFunc("GET /v1/clock", func(w http.ResponseWriter, _ *http.Request) { tell(w) })
	mux.HandleFunc("POST /v1/clock/accept", func(w http.ResponseWriter, _ *http.Request) { accepted = true; tell(w) })
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "unix", paths.DaemonSocket())
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: mux}
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(func() { _ = server.Close() })
	for name, c := range map[string]struct {
		args   []string
		steady bool
		want   string // "": it is accepted
	}{
		"no time":                 {nil, false, "the host's clock says 2027-03-04 05:06:07"},
		"another time":            {[]string{"--time", "2027-03-04 06:06:07"}, false, "is not what you have seen"},
		"no time at all":          {[]string{"--time", "soon"}, false, "is no time such as"},
		"control: as it was seen": {[]string{"--time", "2027-03-04 05:04:00"}, false, ""},
		"control: no jump":        {nil, true, ""},
	} {
		jumped, accepted = !c.steady, false
		cmd := newClockAccept()
		cmd.SetArgs(c.args)
		cmd.SilenceErrors, cmd.SilenceUsage = true, true
		err := cmd.ExecuteContext(t.Context())
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) || accepted != (c.want == "") {
			t.Errorf("%s: %v, accepted %v", name, err, accepted)
		}
	}
}
