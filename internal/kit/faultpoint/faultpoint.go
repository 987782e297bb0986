// Package faultpoint lets a test kill the daemon at a named place, as a crash of
// the worst kind would: nothing is flushed, no deferred call runs.
//
// A point lies between two steps that a crash may come between. It costs a look at the environment
// and does nothing, unless the variable names it.
//
// A new one is a constant here, an element of All, and a Hit where it belongs.
package faultpoint

import (
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
)

// Variable is the environment variable that names the point at which its process
// dies: by its name, or by its name, a colon and the number of the time that the process
// comes by, from 1.
const Variable = "COFFERDAM_FAULTPOINT"

// Point is the name of a place: what goes on there, then how far it is.
type Point string

// Of a create, in their order.
const (
	CreatePlanned    Point = "create.planned"    // checked; nothing is written yet
	CreateJournaled  Point = "create.journaled"  // known as creating
	CreateRegistered Point = "create.registered" // the door knows it
	CreateRecorded   Point = "create.recorded"   // the started record is written
	CreateLaunched   Point = "create.launched"   // its processes run
	CreateRemembered Point = "create.remembered" // the keeper has its meta
	CreateConfigured Point = "create.configured" // the guest knows who it is
	CreateListed     Point = "create.listed"     // what the template brings is known
	CreateRunning    Point = "create.running"    // known as running; the caller does not know yet
)

// Of a command.
const (
	ExecJudged   Point = "exec.judged"   // its started record is written
	ExecStarted  Point = "exec.started"  // the guest has it
	ExecEnded    Point = "exec.ended"    // its exit is known here
	ExecRecorded Point = "exec.recorded" // what it installed is on record
	ExecSettled  Point = "exec.settled"  // its end is on record
)

// Of a pause. A freeze for a hold takes the same way.
const (
	PauseAsked       Point = "pause.asked"
	FreezeRoom       Point = "freeze.room"       // room for the image is taken
	FreezeRemembered Point = "freeze.remembered" // the keeper knows what for
	FreezeWritten    Point = "freeze.written"    // the image is whole, the processes are gone
	FreezeRecorded   Point = "freeze.recorded"
	PauseDone        Point = "pause.done" // the caller does not know yet
)

// Of a resume. A thaw after a hold takes the same way from the second on.
const (
	ResumeChecked Point = "resume.checked" // policy and advisories allow it
	ThawBegun     Point = "thaw.begun"
	ThawRunning   Point = "thaw.running"   // its processes run
	ThawWoken     Point = "thaw.woken"     // the guest knows what time it is
	ThawForgotten Point = "thaw.forgotten" // the image is gone
	ThawRecorded  Point = "thaw.recorded"
	ResumeDone    Point = "resume.done" // the caller does not know yet
	// It runs, and is to be paused without memory before anybody is told.
	ResumeForFiles Point = "resume.for-files"
)

// Of a destroy.
const (
	DestroyJournaled Point = "destroy.journaled" // known as destroying
	DestroyQuiet     Point = "destroy.quiet"     // nothing is done to it any more
	DestroySettled   Point = "destroy.settled"   // its last commands are on record
	DestroyGone      Point = "destroy.gone"      // processes and files are gone
	DestroyDropped   Point = "destroy.dropped"   // its image is gone
	DestroyRecorded  Point = "destroy.recorded"  // the finished record is written
	DestroyForgotten Point = "destroy.forgotten" // known as destroyed
)

// Of a change of when a sandbox ends.
const (
	ExtendJournaled Point = "extend.journaled"
	ExtendRecorded  Point = "extend.recorded"
)

// Of a daemon that takes over from one that died.
const (
	RecoverBegun   Point = "recover.begun"
	RecoverAdopted Point = "recover.adopted" // the first sandbox is taken over
	RecoverDone    Point = "recover.done"
)

// Of a snapshot, a fork and a restore.
const (
	SnapshotBegun     Point = "snapshot.begun"
	SnapshotWritten   Point = "snapshot.written"
	SnapshotSealed    Point = "snapshot.sealed"
	SnapshotPublished Point = "snapshot.published"
	ForkImaged        Point = "fork.imaged"
	ForkRestored      Point = "fork.restored"
	RestoreBooted     Point = "restore.booted"
	RestoreConfigured Point = "restore.configured"
)

// Of any record of the log, which is why they are named with a number. They are no elements
// of All, since the process comes by them in whatever it does.
const (
	RecordAsked   Point = "record.asked"   // it is not written yet; twice, where an owner was erased meanwhile
	RecordWritten Point = "record.written" // it is on the disk; whoever waits for that does not know yet
)

// All are the points that one thing passes alone, in no order that means anything.
func All() []Point {
	return []Point{
		CreatePlanned, CreateJournaled, CreateRegistered, CreateRecorded, CreateLaunched, CreateRemembered, CreateConfigured, CreateListed, CreateRunning,
		ExecJudged, ExecStarted, ExecEnded, ExecRecorded, ExecSettled,
		PauseAsked, FreezeRoom, FreezeRemembered, FreezeWritten, FreezeRecorded, PauseDone,
		ResumeChecked, ThawBegun, ThawRunning, ThawWoken, ThawForgotten, ThawRecorded, ResumeDone, ResumeForFiles,
		DestroyJournaled, DestroyQuiet, DestroySettled, DestroyGone, DestroyDropped, DestroyRecorded, DestroyForgotten,
		ExtendJournaled, ExtendRecorded,
		RecoverBegun, RecoverAdopted, RecoverDone,
		SnapshotBegun, SnapshotWritten, SnapshotSealed, SnapshotPublished, ForkImaged, ForkRestored, RestoreBooted, RestoreConfigured,
	}
}

// times counts how often the process came by the point that the variable names with a number.
var times atomic.Int64 //nolint:gochecknoglobals // of the process, as its environment is

// Hit kills this very process if the environment names the point; otherwise it
// does nothing.
func Hit(p Point) {
	name, number, numbered := strings.Cut(os.Getenv(Variable), ":")
	if name != string(p) {
		return
	}
	if numbered {
		if n, err := strconv.ParseInt(number, 10, 64); err != nil || times.Add(1) != n {
			return // also where the number is none: nobody is killed by a slip
		}
	}
	_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	select {} // it does not come back from that
}
