// Package gateway is the registry server: the one thing that a sandbox can
// talk to, and with package upstream the one thing that talks to the world.
// For each request it finds the caller and the protocol, asks the door, takes
// the bytes from the cache or fetches and verifies them whole, has the serving
// recorded, and only then sends.
//
// The life of a request is in docs/ecosystems.md; what each client shows of a
// refusal, too. Nothing that one guest does can be read by another: there is
// no negative cache, no listing and no counter.
package gateway

import (
	"log/slog"
	"net/http"

	"github.com/cofferdam-dev/cofferdam/internal/packages/gateway/artifacts"
	"github.com/cofferdam-dev/cofferdam/internal/packages/gateway/coalesce"
	"github.com/cofferdam-dev/cofferdam/internal/packages/gateway/pages"
)

// Gateway serves registries to sandboxes. Make one with New, Start it, hand it
// connections with ServeRegistry, Close it.
type Gateway struct {
	cfg     Config
	door    Door
	log     *slog.Logger
	server  *http.Server
	feed    *feed
	flights *coalesce.Group // ends with Close

	sources     sources
	names       *names
	guests      *guestRates
	pages       *pages.Pages
	artifacts   *artifacts.Artifacts
	locator     *locator
	inspections *inspections
	attachments *attachments
	relays      *relays
	walker      *walker
	proposals   *proposals
	builds      *builds
}
