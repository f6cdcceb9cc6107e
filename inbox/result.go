package inbox

import "strings"

// Result is what came of an event: what is stored of it, and shown to operators. The zero Result is
// none.
type Result struct {
	kind resultKind
	text string
}

type resultKind int

const (
	nothing resultKind = iota
	changed
	foreign       // its payload is kept no longer
	recordsDiffer // an operator has to look
)

// Nothing is the result of an event that changes nothing, and why.
func Nothing(why string) Result { return Result{nothing, why} }

// NothingNew is the result of an event that says what is known already.
var NothingNew = Nothing("nothing new")

// Changed is the result of an event that had an effect: what changed, or the events that say so.
func Changed(what ...string) Result { return Result{changed, strings.Join(what, ", ")} }

// Foreign is the result of an event that is not about anything of this installation: its payload is
// kept no longer.
var Foreign = Result{foreign, "not of this installation"}

// RecordsDiffer is the result of an event that shows that the provider's records and ours do not
// agree, and in what. It is logged once, at level error.
func RecordsDiffer(what string) Result { return Result{recordsDiffer, "books differ: " + what} }

// IsChange reports whether an event had an effect.
func (r Result) IsChange() bool { return r.kind == changed }

// String returns the text that is stored.
func (r Result) String() string { return r.text }
