package e2b

import (
	"math"
	"slices"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox"
)

// clientID is a field that clients must be given and do nothing with.
const clientID = "cofferdam"

// createdSandbox is what create, connect and fork answer.
type createdSandbox struct {
	SandboxID          string `json:"sandboxID"`
	TemplateID         string `json:"templateID"`
	ClientID           string `json:"clientID"`
	EnvdVersion        string `json:"envdVersion"`
	EnvdAccessToken    string `json:"envdAccessToken"`
	TrafficAccessToken string `json:"trafficAccessToken,omitempty"`
	Domain             string `json:"domain,omitempty"`
}

// listedSandbox is an entry of a list.
type listedSandbox struct {
	SandboxID    string            `json:"sandboxID"`
	TemplateID   string            `json:"templateID"`
	Alias        string            `json:"alias,omitempty"`
	ClientID     string            `json:"clientID"`
	StartedAt    stamp             `json:"startedAt"`
	EndAt        stamp             `json:"endAt"`
	CPUCount     int64             `json:"cpuCount"`
	MemoryMB     int64             `json:"memoryMB"`
	DiskSizeMB   int64             `json:"diskSizeMB"`
	Metadata     map[string]string `json:"metadata"`
	State        string            `json:"state"`
	EnvdVersion  string            `json:"envdVersion"`
	Unresponsive bool              `json:"envdUnresponsiveAtPause,omitempty"` // of a paused one: its agent did not answer
	VolumeMounts []string          `json:"volumeMounts"`                      // always empty
}

// sandboxDetail is one sandbox's info. Policy and Notes are ours: clients that do
// not know them leave them out.
type sandboxDetail struct {
	listedSandbox

	EnvdAccessToken     string      `json:"envdAccessToken"`
	Domain              string      `json:"domain,omitempty"`
	AllowInternetAccess bool        `json:"allowInternetAccess"`
	Network             networkInfo `json:"network"`
	Lifecycle           lifecycle   `json:"lifecycle"`
	PauseMode           string      `json:"pauseMode,omitempty"` // of a paused one: whether its memory was kept
	Policy              string      `json:"policy"`
	PolicyDigest        string      `json:"policyDigest"`
	Notes               []string    `json:"notes"`
}

type lifecycle struct {
	OnTimeout  string `json:"onTimeout"`
	AutoResume bool   `json:"autoResume"`
}

// stamp is a time as all clients read it.
type stamp time.Time

// MarshalText implements encoding.TextMarshaler.
func (s stamp) MarshalText() ([]byte, error) {
	return []byte(time.Time(s).UTC().Format("2006-01-02T15:04:05.000Z")), nil
}

// created has the tokens of a sandbox's data plane.
func (c *Control) created(info sandbox.Info) createdSandbox {
	return createdSandbox{
		SandboxID: info.ID, TemplateID: templateID(info), ClientID: clientID, EnvdVersion: EnvdVersion,
		EnvdAccessToken: c.cfg.Access.Token(info.ID), TrafficAccessToken: c.cfg.Access.Contexts(info.ID), Domain: c.cfg.Domain,
	}
}

// templateID is the template as the client called it.
func templateID(info sandbox.Info) string {
	if called := info.Labels[labelTemplate]; called != "" {
		return called
	}
	return info.Template
}

func listed(sb *sandbox.Sandbox) listedSandbox {
	info := sb.Info()
	const mib = 1 << 20
	return listedSandbox{
		SandboxID: info.ID, TemplateID: templateID(info), Alias: info.Template, ClientID: clientID,
		StartedAt: stamp(info.Created), EndAt: stamp(endOfSandbox(sb)),
		CPUCount: int64(math.Ceil(info.Limits.CPU)), MemoryMB: info.Limits.MemoryBytes / mib, DiskSizeMB: info.Limits.DiskBytes / mib,
		Metadata: metadata(info.Labels), State: stateOf(sb), EnvdVersion: EnvdVersion,
		Unresponsive: sb.SilentAtPause(), VolumeMounts: []string{},
	}
}

// detail is a sandbox with what it really has.
func (c *Control) detail(sb *sandbox.Sandbox) sandboxDetail {
	info := sb.Info()
	onTimeout := "kill"
	if sb.Lifetime().Then.Pauses() {
		onTimeout = "pause"
	}
	return sandboxDetail{
		listedSandbox: listed(sb), EnvdAccessToken: c.cfg.Access.Token(info.ID), Domain: c.cfg.Domain,
		Network: effective(info.Labels), Lifecycle: lifecycle{OnTimeout: onTimeout, AutoResume: AutoResumes(info.Labels)},
		PauseMode: pauseMode(sb), Policy: info.Labels[labelPolicy], PolicyDigest: info.PolicyDigest,
		Notes: slices.Concat(networkNotes(c.cfg.Sandboxes.Narrowing(info.ID)), info.Notes, info.Missing),
	}
}

// pauseMode is what the pause of a sandbox has kept; "": it is not paused.
func pauseMode(sb *sandbox.Sandbox) string {
	switch {
	case stateOf(sb) != statePaused:
		return ""
	case sb.FilesAlone():
		return "filesystem"
	}
	return "full"
}

// endOfSandbox is when a sandbox ends by itself; clients know no "never".
func endOfSandbox(sb *sandbox.Sandbox) time.Time {
	if at := sb.Ends(); !at.IsZero() {
		return at
	}
	return time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC)
}

// The two states that clients know.
const (
	stateRunning = "running"
	statePaused  = "paused"
)

// stateOf: what is on disk because it waits for a person is paused, too.
func stateOf(sb *sandbox.Sandbox) string {
	switch state, _ := sb.State(); state {
	case sandbox.Paused, sandbox.Frozen:
		return statePaused
	default:
		return stateRunning
	}
}
