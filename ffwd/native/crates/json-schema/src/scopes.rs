//! Dynamic scopes: the meaning of `$dynamicRef` and `$recursiveRef` depends on the resources
//! entered on the path. A schema that is reached in several scopes is several schemas. Each but the
//! first gets a separate node, an alias.

use rustc_hash::{FxHashMap, FxHashSet};

use super::document::NodeId;
use super::error::LimitExceeded;

/// For each dynamic anchor, by name, the schema that the outermost resource gives it. Sorted.
type Bindings = Vec<(String, NodeId)>;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct ScopeId(u32);

/// The scopes in which schemas are reached.
#[derive(Debug)]
pub struct Scopes {
    bindings: Vec<Bindings>,
    ids: FxHashMap<Bindings, ScopeId>,
    /// The scope after entering a resource, by its root.
    entered: FxHashMap<(ScopeId, NodeId), ScopeId>,
    /// By the schema's own node or its alias.
    scope_of: FxHashMap<NodeId, ScopeId>,
    /// The identity of a schema in a scope.
    known: FxHashMap<(NodeId, ScopeId), NodeId>,
    /// Schemas that are known by their own node in some scope.
    own: FxHashSet<NodeId>,
    /// The schemas of aliases. The first alias has the number of nodes as its own.
    aliases: Vec<NodeId>,
    num_nodes: usize,
    maximum: u64,
    /// The identities of a schema's subschemas that are aliases.
    children: FxHashMap<(NodeId, NodeId), NodeId>,
}

impl Scopes {
    pub fn new(num_nodes: usize, maximum: u64) -> Self {
        Self {
            bindings: vec![Bindings::new()],
            ids: FxHashMap::from_iter([(Bindings::new(), ScopeId(0))]),
            entered: FxHashMap::default(),
            scope_of: FxHashMap::default(),
            known: FxHashMap::default(),
            own: FxHashSet::default(),
            aliases: Vec::new(),
            num_nodes,
            maximum,
            children: FxHashMap::default(),
        }
    }

    /// Returns the identity of a resource's `node` when it is reached from `of`, a schema that was
    /// reached before, or from no schema. `anchors` are the dynamic ones of the resource.
    pub fn enter(
        &mut self,
        of: Option<NodeId>,
        node: NodeId,
        resource: NodeId,
        anchors: &[(String, NodeId)],
    ) -> Result<NodeId, LimitExceeded> {
        let outer = of.and_then(|of| self.scope_of.get(&of).copied()).unwrap_or(ScopeId(0));
        let scope = self.inside(outer, resource, anchors)?;
        let known = match self.known.get(&(node, scope)) {
            Some(&known) => known,
            None => {
                let known = if self.own.insert(node) {
                    node
                } else {
                    self.check(self.aliases.len())?;
                    self.aliases.push(node);
                    NodeId((self.num_nodes + self.aliases.len() - 1) as u32)
                };
                self.known.insert((node, scope), known);
                self.scope_of.insert(known, scope);
                known
            }
        };
        if let (Some(of), true) = (of, known != node) {
            self.children.insert((of, node), known);
        }
        Ok(known)
    }

    fn inside(
        &mut self,
        outer: ScopeId,
        resource: NodeId,
        anchors: &[(String, NodeId)],
    ) -> Result<ScopeId, LimitExceeded> {
        if anchors.is_empty() {
            return Ok(outer);
        }
        if let Some(&scope) = self.entered.get(&(outer, resource)) {
            return Ok(scope);
        }
        let mut bindings = self.bindings[outer.0 as usize].clone();
        for (name, node) in anchors {
            if let Err(place) = bindings.binary_search_by(|(known, _)| known.cmp(name)) {
                bindings.insert(place, (name.clone(), *node));
            }
        }
        let scope = match self.ids.get(&bindings) {
            Some(&scope) => scope,
            None => {
                self.check(self.bindings.len())?;
                let scope = ScopeId(self.bindings.len() as u32);
                self.bindings.push(bindings.clone());
                self.ids.insert(bindings, scope);
                scope
            }
        };
        self.entered.insert((outer, resource), scope);
        Ok(scope)
    }

    fn check(&self, number: usize) -> Result<(), LimitExceeded> {
        if number as u64 >= self.maximum {
            return Err(LimitExceeded { limit: "dynamic_scopes", maximum: self.maximum });
        }
        Ok(())
    }

    /// The schema that a dynamic anchor stands for in the scope of a schema.
    pub fn bound(&self, within: NodeId, name: &str) -> Option<NodeId> {
        let bindings = &self.bindings[self.scope_of.get(&within)?.0 as usize];
        let place = bindings.binary_search_by(|(known, _)| known.as_str().cmp(name)).ok()?;
        Some(bindings[place].1)
    }

    /// Returns the node of the document for a schema.
    pub fn source(&self, known: NodeId) -> NodeId {
        match known.index().checked_sub(self.num_nodes) {
            Some(place) => self.aliases[place],
            None => known,
        }
    }

    /// Returns the identity of a subschema of a schema.
    pub fn child(&self, of: NodeId, node: NodeId) -> NodeId {
        self.children.get(&(of, node)).copied().unwrap_or(node)
    }

    /// The schemas that the aliases stand for, in the order of the aliases.
    pub fn aliases(&self) -> &[NodeId] {
        &self.aliases
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_outermost_resource_binds_a_name() {
        let [root, outer, inner, leaf] = [0, 1, 2, 3].map(NodeId);
        let of_outer = [("x".to_owned(), outer)];
        let of_inner = [("x".to_owned(), inner), ("y".to_owned(), inner)];
        let mut scopes = Scopes::new(10, 5);
        assert_eq!(scopes.enter(None, root, root, &[]), Ok(root));
        assert_eq!(scopes.enter(Some(root), inner, inner, &of_inner), Ok(inner));
        assert_eq!(scopes.enter(Some(inner), leaf, inner, &of_inner), Ok(leaf));
        assert_eq!(scopes.bound(leaf, "x"), Some(inner));
        assert_eq!(scopes.enter(Some(root), outer, outer, &of_outer), Ok(outer));
        // The same schemas on another path are different.
        let other = scopes.enter(Some(outer), inner, inner, &of_inner).unwrap();
        assert_eq!((other, scopes.source(other)), (NodeId(10), inner));
        let other_leaf = scopes.enter(Some(other), leaf, inner, &of_inner).unwrap();
        assert_eq!((other_leaf, scopes.source(other_leaf)), (NodeId(11), leaf));
        assert_eq!(scopes.bound(other_leaf, "x"), Some(outer));
        assert_eq!(scopes.bound(other_leaf, "y"), Some(inner));
        assert_eq!(scopes.bound(other_leaf, "z"), None);
        assert_eq!(scopes.child(other, leaf), other_leaf);
        assert_eq!(scopes.child(inner, leaf), leaf);
        assert_eq!(scopes.aliases(), [inner, leaf]);
    }
}
