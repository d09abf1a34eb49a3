package ledger

// How much of a piece of treatment the model was given. What is loaded on demand by design, such as
// the body of a skill, is graded by what announces it: its name and its description.
const (
	GivenWhole   = "whole"
	GivenPart    = "part" // Piece.Share says how much
	GivenName    = "name" // the name alone
	GivenAbsent  = "absent"
	GivenUnknown = "unknown" // Piece.Why says why
)

// The kinds of pieces of treatment.
const (
	PieceInstructions = "instructions" // a file such as CLAUDE.md
	PieceSkill        = "skill"
	PieceAgent        = "agent"   // the definition of a sub-agent
	PieceCommand      = "command" // a prompt that is called by name
	PiecePrompt       = "prompt"  // what the arm adds to the system prompt
	PieceProfile      = "profile"
	PieceServer       = "mcp" // a tool server
	PieceSettings     = "settings"
	PieceFile         = "file" // any other file that the arm brings
)

// Who brings a piece.
const (
	FromArm    = "arm"
	FromFamily = "family" // the skills that all arms of a family share
	FromTask   = "task"   // the files of the task, or its repository
	// FromOther marks what only another arm brings and the model was given all the same.
	FromOther = "other"
)

// Treatment says what the model of an attempt was given. It is found by content, in the record of
// the attempt's calls.
type Treatment struct {
	Context string `json:"context"` // what the agent read of its project: project or none
	// Unknown says why nobody can know what the model was given; empty: the pieces say it.
	Unknown string  `json:"unknown,omitempty"`
	Pieces  []Piece `json:"pieces,omitempty"`
	// Served are the models that answered, by the names they gave themselves.
	Served []Served `json:"served,omitempty"`
	// Implausible counts calls whose numbers of tokens cannot be, and Miscounted names the first.
	Implausible int    `json:"implausible,omitempty"`
	Miscounted  string `json:"miscounted,omitempty"`
	// SystemTokens estimates how long the system prompt of the first request is, and VendorTokens
	// how much of it no piece accounts for: it comes with the agent.
	SystemTokens int `json:"systemTokens,omitempty"`
	VendorTokens int `json:"vendorTokens,omitempty"`
	// Tools are the names of the tools that the first request offers, and ToolTokens estimates how
	// long their definitions are.
	Tools      []string `json:"tools,omitempty"`
	ToolTokens int      `json:"toolTokens,omitempty"`
	// Managed are files of the machine's administrator that the agent may have read.
	Managed []string `json:"managed,omitempty"`
	// Programs are files of the project that let the agent run programs of the project.
	Programs []string `json:"programs,omitempty"`
}

// Piece is one text or file that an agent was to be given.
type Piece struct {
	Kind string `json:"kind"`
	Name string `json:"name"`
	// Path is relative to the working directory; empty for what is not a file there.
	Path   string  `json:"path,omitempty"`
	Digest string  `json:"digest,omitempty"`
	From   string  `json:"from"`
	Given  string  `json:"given"`
	Share  float64 `json:"share,omitempty"`
	Why    string  `json:"why,omitempty"`
	// Opened says whether what is loaded on demand was loaded; nil for what is not, and where it is
	// not known.
	Opened *bool `json:"opened,omitempty"`
	// Where says in which part of the request it stands: system, messages or tools.
	Where string `json:"where,omitempty"`
	// Tokens estimates what it adds to every call.
	Tokens int `json:"tokens,omitempty"`
}

// Served is a model that answered calls.
type Served struct {
	Model string `json:"model"`
	Asked string `json:"asked,omitempty"` // the name that the requests had
	Calls int    `json:"calls"`
}
