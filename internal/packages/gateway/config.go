package gateway

import (
	"context"
	"log/slog"
	"net"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/kit/clock"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/packages/cache"
	"github.com/cofferdam-dev/cofferdam/internal/packages/ecosystem"
	"github.com/cofferdam-dev/cofferdam/internal/packages/ecosystem/all"
	"github.com/cofferdam-dev/cofferdam/internal/packages/upstream"
)

// Config of a gateway. Zero fields but CacheDir and Upstreams take the default.
type Config struct {
	CacheDir  string
	Upstreams []upstream.Config
	// Protocols that are spoken; default: all.
	Protocols []ecosystem.Protocol
	// ProbeProjects are asked for at the start, to learn the file hosts from
	// their pages; default: what the protocols name.
	ProbeProjects map[pkgref.Ecosystem][]string
	Version       string
	Resolver      upstream.Resolver // default: the system's
	// Dial connects to an IP address and a port; default: this process does.
	Dial   func(ctx context.Context, network, address string) (net.Conn, error)
	Limits Limits
	Log    *slog.Logger // for the operator; default: none
	// Clock is when files are first seen; default: the host's, which is believed. After a
	// jump of that a file counts as seen at the later of the two times.
	Clock clock.Source
}

// withDefaults fills in what is not set.
func (cfg Config) withDefaults() (Config, error) {
	if len(cfg.Upstreams) == 0 {
		return cfg, fault.Invalid("no upstream registry is known; set one under upstreams: in the configuration")
	}
	if cfg.Protocols == nil {
		cfg.Protocols = all.Protocols()
	}
	if cfg.ProbeProjects == nil {
		cfg.ProbeProjects = probes(cfg.Protocols)
	}
	if cfg.Clock == nil {
		cfg.Clock = clock.Plain(time.Now)
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	cfg.Limits = cfg.Limits.withDefaults()
	return cfg, nil
}

// probes are the projects that protocols name.
func probes(of []ecosystem.Protocol) map[pkgref.Ecosystem][]string {
	projects := map[pkgref.Ecosystem][]string{}
	for _, p := range of {
		if prober, can := p.(ecosystem.Prober); can {
			projects[p.Ecosystem()] = []string{prober.Probe()}
		}
	}
	return projects
}

// now is when something that is seen now was first seen: not before that, whichever
// time is right after a jump of the host's clock.
func (cfg Config) now() time.Time { return cfg.Clock.Read().Latest().UTC() }

// Limits of a gateway; zero fields take the default.
type Limits struct {
	Cache    cache.Limits
	Upstream upstream.Limits

	Fresh          time.Duration // for which a page is not asked for again; default 5 min
	Stale          time.Duration // for which it is served while it is asked for again; default 15 min
	PageMemory     int64         // bytes of pages kept in memory; default 24 MiB
	RenderedMemory int64         // bytes of rendered pages, packed; default 24 MiB
	RequiredMemory int64         // bytes of what the releases of pages require; default 8 MiB
	Requests       int           // per second and guest, with as many again at once; default 200
	Queue          time.Duration // that a request waits for its turn when there are more; default 5 s
	RefusedNames   int           // distinct names of a guest that lead to nothing; default 50
	ShownNames     int           // those that are shown, and that nothing admits; default 2,000
	FetchAhead     int           // artifacts fetched before they are asked for, at a time; default 4, and one for each further guest
	SidecarBytes   int64         // of one sidecar; default 8 MiB
	LearnTime      time.Duration // that a start waits for the upstreams; default 10 s
	LearnAgain     time.Duration // between two tries to learn file hosts; default 30 s
	RequestTime    time.Duration // that a guest takes to send a request; default 1 min
	UnreadTime     time.Duration // that a guest takes to read any of what it is sent; default 15 min
	WalkTime       time.Duration // that a request waits for what may require a package to be read; default 1 min
	QuietTime      time.Duration // that a request waits for the next one that may lead to it; default 2 s
	Interim        time.Duration // between two interim answers to one that waits for a person; default 5 s
}

func (l Limits) withDefaults() Limits {
	l.Fresh = orStandard(l.Fresh, 5*time.Minute)
	l.Stale = orStandard(l.Stale, 15*time.Minute)
	l.PageMemory = orStandard(l.PageMemory, 24<<20)
	l.RenderedMemory = orStandard(l.RenderedMemory, 24<<20)
	l.RequiredMemory = orStandard(l.RequiredMemory, 8<<20)
	l.Requests = orStandard(l.Requests, 200)
	l.Queue = orStandard(l.Queue, 5*time.Second)
	l.RefusedNames = orStandard(l.RefusedNames, 50)
	l.ShownNames = orStandard(l.ShownNames, 2_000)
	l.FetchAhead = orStandard(l.FetchAhead, 4)
	l.SidecarBytes = orStandard(l.SidecarBytes, 8<<20)
	l.LearnTime = orStandard(l.LearnTime, 10*time.Second)
	l.LearnAgain = orStandard(l.LearnAgain, 30*time.Second)
	l.RequestTime = orStandard(l.RequestTime, time.Minute)
	l.UnreadTime = orStandard(l.UnreadTime, 15*time.Minute)
	l.WalkTime = orStandard(l.WalkTime, time.Minute)
	l.QuietTime = orStandard(l.QuietTime, 2*time.Second)
	l.Interim = orStandard(l.Interim, 5*time.Second) // pip waits 15 seconds for a byte unless it is told otherwise
	return l
}

func orStandard[T int | int64 | time.Duration](v, standard T) T {
	if v == 0 {
		return standard
	}
	return v
}
