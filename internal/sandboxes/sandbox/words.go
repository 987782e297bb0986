package sandbox

import (
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox/commands"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox/copies"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox/journal"
)

// The words in which the manager is spoken to: what the journal has of a sandbox, commands
// and copies.
type (
	// Info is what a sandbox was made as.
	Info = journal.Info
	// State is where a sandbox stands.
	State = journal.State
	// Lifetime says when a sandbox ends by itself.
	Lifetime = journal.Lifetime
	// AtEnd is what becomes of a sandbox whose time is over.
	AtEnd = journal.AtEnd
	// Owner is the token whose sandbox it is.
	Owner = journal.Owner
	// Account is the user inside who runs commands.
	Account = journal.Account
	// Journal keeps what a daemon must find of its sandboxes after the one before it died.
	Journal = journal.Journal
	// Entry is a sandbox in the journal.
	Entry = journal.Entry
	// Event is a change of a sandbox's state.
	Event = journal.Event
	// Command asks for a process in a sandbox.
	Command = commands.Command
	// Elevated is a command of root's with rights.
	Elevated = commands.Elevated
	// Started is a command that runs in a sandbox, as it was started.
	Started = commands.Started
	// Snapshot is a copy of a sandbox that others can be made from.
	Snapshot = copies.Snapshot
	// Built is what a template's build settles for the sandboxes made of its result.
	Built = copies.Built
	// SystemPackage is a package of the distribution that a build brought.
	SystemPackage = copies.SystemPackage
	// Keep says what a snapshot is to be.
	Keep = copies.Keep
	// Clock is how much time a sandbox had left when that was written.
	Clock = journal.Clock
)

// The states.
const (
	Creating     = journal.Creating
	Running      = journal.Running
	Snapshotting = journal.Snapshotting
	Freezing     = journal.Freezing
	Frozen       = journal.Frozen
	Paused       = journal.Paused
	Thawing      = journal.Thawing
	Destroying   = journal.Destroying
	Destroyed    = journal.Destroyed
	Failed       = journal.Failed
)

// The ends of a sandbox whose time is over.
const (
	ThenDestroy    = journal.ThenDestroy
	ThenPause      = journal.ThenPause
	ThenPauseFiles = journal.ThenPauseFiles
)

// KeptEvents is how many events a Journal keeps at least.
const KeptEvents = journal.KeptEvents

// NoLease asks for no lease where 0 would leave the one that there is.
const NoLease = journal.NoLease

// BuildLabel is the label of the sandbox in which a template is built.
const BuildLabel = journal.BuildLabel
