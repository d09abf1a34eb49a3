package conventions

import (
	"go/ast"
	"go/token"
	"path"
	"slices"
	"strings"
	"testing"
)

// wireContract is why the values of a protocol are exported as a whole.
const wireContract = "the values of the discuss protocol stand together, whoever uses which"

// exportedAnyway are names that only their own package uses, by package and name, with the reason.
var exportedAnyway = map[string]string{
	"internal/task.TaskFile":                   "it is embedded in another struct, whose schema and decoder see exported names only",
	"internal/bridge.KindReply":                wireContract,
	"internal/bridge.KindAck":                  wireContract,
	"internal/bridge.MaxBody":                  wireContract,
	"internal/bridge.MaxPage":                  wireContract,
	"internal/bridge.LongPoll":                 wireContract,
	"internal/harness.VerdictAdjourned":        wireContract,
	"internal/harness.ReasonProvider":          wireContract,
	"internal/harness.TriggerElapsed":          wireContract,
	"internal/harness.TriggerMissingInput":     wireContract,
	"internal/harness.TriggerEscalationNeeded": wireContract,
}

// exported is what a package offers by name, with the types that its other declarations mention: a
// caller gets their values without naming them.
type exported struct {
	names     map[string]token.Position
	mentioned map[string]bool
}

// TestEveryExportedNameIsUsedElsewhere: a name that only its own package uses is not exported.
// Methods and fields are left out, because interfaces and encoders use them without naming the
// type; so are the constants of an exported type, whose values travel without their names.
func TestEveryExportedNameIsUsedElsewhere(t *testing.T) {
	offered := map[string]*exported{}
	used := map[string]map[string]bool{}
	for _, file := range goFiles(t) {
		findUses(file.pkg(), file.ast, used)
		if !file.test && !slices.Contains(public, file.pkg()) && file.ast.Name.Name != "main" &&
			!strings.HasPrefix(file.path, "examples/") {
			if offered[file.pkg()] == nil {
				offered[file.pkg()] = &exported{map[string]token.Position{}, map[string]bool{}}
			}
			offered[file.pkg()].add(file.ast)
		}
	}
	for pkg, offer := range offered {
		for name, where := range offer.names {
			if !used[pkg][name] && !offer.mentioned[name] && exportedAnyway[pkg+"."+name] == "" {
				t.Errorf("%s:%d: nothing outside %s uses %s; unexport or delete it", where.Filename, where.Line, pkg, name)
			}
		}
	}
}

// add collects the exported names of a file.
func (e *exported) add(file *ast.File) {
	for _, decl := range file.Decls {
		switch decl := decl.(type) {
		case *ast.FuncDecl:
			if decl.Recv == nil && decl.Name.IsExported() {
				e.names[decl.Name.Name] = fset.Position(decl.Pos())
			}
			if decl.Name.IsExported() {
				e.mention(decl.Type, "")
			}
		case *ast.GenDecl:
			enumerates := false
			for _, spec := range decl.Specs {
				if value, ok := spec.(*ast.ValueSpec); ok && decl.Tok == token.CONST {
					ident, named := value.Type.(*ast.Ident)
					enumerates = value.Type == nil && value.Values == nil && enumerates || named && ident.IsExported()
				}
				if !enumerates {
					e.addSpec(spec)
				}
			}
		}
	}
}

func (e *exported) addSpec(spec ast.Spec) {
	switch spec := spec.(type) {
	case *ast.TypeSpec:
		if spec.Name.IsExported() {
			e.names[spec.Name.Name] = fset.Position(spec.Pos())
			e.mention(spec.Type, spec.Name.Name)
		}
	case *ast.ValueSpec:
		for _, name := range spec.Names {
			if name.IsExported() {
				e.names[name.Name] = fset.Position(name.Pos())
				if spec.Type != nil {
					e.mention(spec.Type, "")
				}
			}
		}
	}
}

// mention notes the types in the exported part of a declaration.
func (e *exported) mention(node ast.Node, except string) {
	ast.Inspect(node, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.Field:
			if len(n.Names) > 0 && !slices.ContainsFunc(n.Names, (*ast.Ident).IsExported) {
				if _, isStruct := node.(*ast.StructType); isStruct {
					return false
				}
			}
		case *ast.Ident:
			if n.IsExported() && n.Name != except {
				e.mentioned[n.Name] = true
			}
		}
		return true
	})
}

// findUses notes which names of our packages a file of another package uses.
func findUses(pkg string, file *ast.File, used map[string]map[string]bool) {
	imports := map[string]string{}
	outside := strings.HasSuffix(file.Name.Name, "_test") // tests that see a package from outside
	for _, spec := range file.Imports {
		target, ours := strings.CutPrefix(strings.Trim(spec.Path.Value, `"`), module+"/")
		if !ours || target == pkg && !outside {
			continue
		}
		name := path.Base(target)
		if spec.Name != nil {
			name = spec.Name.Name
		}
		imports[name] = target
	}
	ast.Inspect(file, func(n ast.Node) bool {
		if selector, ok := n.(*ast.SelectorExpr); ok {
			if ident, ok := selector.X.(*ast.Ident); ok && imports[ident.Name] != "" {
				target := imports[ident.Name]
				if used[target] == nil {
					used[target] = map[string]bool{}
				}
				used[target][selector.Sel.Name] = true
			}
		}
		return true
	})
}
