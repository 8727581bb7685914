//! The reference page of the contract, made from the WIT: one section for each interface, with its
//! functions and types and their descriptions there.
//!
//! [`undescribed`] lists items without a description.

use std::fmt::Write as _;
use std::path::Path;
use wit_parser::{
    Docs, Function, FunctionKind, Handle, Interface, Resolve, Stability, Type, TypeDef,
    TypeDefKind, TypeId,
};

/// Directory of the contract, seen from a crate of this workspace.
pub const WIT_DIR: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../wit");

/// Name of the page's file in that directory.
pub const PAGE: &str = "reference.md";

/// A package of the contract, and its part of the page.
struct Package {
    /// Directory of the package, relative to that of the contract.
    directory: &'static str,
    title: &'static str,
    /// Prefix of its names, in case two packages have the same ones.
    prefix: &'static str,
    /// The interfaces in reading order, with the intended readers of each.
    interfaces: &'static [(&'static str, &'static str)],
}

const PACKAGES: [Package; 2] = [
    Package {
        directory: ".",
        title: "The component: `tidepool:tsdb`",
        prefix: "",
        interfaces: &[
            ("types", "words of all others"),
            ("store", "exported: what embedders call"),
            ("query", "exported by the world `engine-with-queries`: PromQL"),
            ("inspect", "exported: tools look at blocks"),
            ("backfill", "exported: tools make blocks of old samples"),
            ("forward", "exported: requests for other receivers"),
            ("wal", "imported: what a host implements"),
            ("blocks", "imported: what a host implements"),
            ("head-source", "imported: answered only by hosts that keep the roles apart"),
        ],
    },
    Package {
        directory: "plugin",
        title: "Plugins: `tidepool:plugin`",
        prefix: "plugin-",
        interfaces: &[
            ("types", "words of all others"),
            ("transform-batches", "exported by a transform"),
            ("decode-bodies", "exported by a decoder"),
            ("run-job", "exported by a job"),
            ("observe-batches", "exported by an observer"),
            ("store", "imported by jobs"),
            ("query", "imported by jobs: PromQL over the store"),
            ("webhook", "imported by jobs and observers"),
        ],
    },
];

/// The packages of the contract.
pub struct Contract(Vec<(&'static Package, Resolve)>);

pub fn read(directory: &Path) -> Result<Contract, String> {
    let read = |package: &'static Package| {
        let mut resolve = Resolve::default();
        let directory = directory.join(package.directory);
        resolve.push_dir(&directory).map_err(|error| format!("{error:?}"))?;
        Ok((package, resolve))
    };
    PACKAGES.iter().map(read).collect::<Result<_, String>>().map(Contract)
}

pub fn page(Contract(packages): &Contract) -> String {
    let mut out = String::from(
        "# The contract\n\nMade from `wit/` by `cargo run -p tidepool-tests --bin wit-reference`; a \
         test says when it is out of date.\n",
    );
    for (Package { title, prefix, interfaces, .. }, _) in packages {
        _ = write!(out, "\n{title}\n\n| interface | |\n| --- | --- |\n");
        for (name, purpose) in *interfaces {
            _ = writeln!(out, "| [`{name}`](#{prefix}{name}) | {purpose} |");
        }
    }
    for (Package { prefix, interfaces, .. }, resolve) in packages {
        for (name, _) in *interfaces {
            let is_it = |one: &Interface| one.name.as_deref() == Some(name);
            let found = resolve.interfaces.iter().find(|(_, one)| is_it(one));
            if let Some((_, interface)) = found {
                section(&mut out, resolve, &format!("{prefix}{name}"), interface);
            }
        }
    }
    out
}

/// Returns every public item that lacks a description or a version (`@since`), and interfaces that
/// the page leaves out.
pub fn undescribed(Contract(packages): &Contract) -> Vec<String> {
    let of = |(package, resolve): &(&Package, Resolve)| undescribed_in(package, resolve);
    packages.iter().flat_map(of).collect()
}

fn undescribed_in(package: &Package, resolve: &Resolve) -> Vec<String> {
    let (mut missing, mut unlisted) = (Vec::new(), Vec::new());
    let mut check = |what: String, docs: Option<&Docs>, stability: &Stability| {
        if docs.is_some_and(|docs| text(docs).is_empty()) {
            missing.push(format!("{what}: no description"));
        }
        if !matches!(stability, Stability::Stable { .. }) {
            missing.push(format!("{what}: no @since"));
        }
    };
    for (_, world) in &resolve.worlds {
        check(format!("world {}", world.name), Some(&world.docs), &world.stability);
    }
    for (_, interface) in &resolve.interfaces {
        let name = interface.name.clone().unwrap_or_default();
        check(name.clone(), Some(&interface.docs), &interface.stability);
        for (type_name, id) in &interface.types {
            let found = &resolve.types[*id];
            // A type used from another interface is described there.
            if !is_used(found) {
                check(format!("{name}.{type_name}"), Some(&found.docs), &found.stability);
            }
        }
        for (function_name, function) in &interface.functions {
            let what = format!("{name}.{function_name}");
            // The version of a member is that of its resource.
            let stability = match function.kind.resource() {
                Some(resource) => &resolve.types[resource].stability,
                None => &function.stability,
            };
            // Constructors need no description.
            let is_constructor = matches!(function.kind, FunctionKind::Constructor(_));
            check(what, (!is_constructor).then_some(&function.docs), stability);
        }
        if !package.interfaces.iter().any(|(listed, _)| *listed == name) {
            unlisted.push(format!("{name}: not on the page"));
        }
    }
    missing.extend(unlisted);
    missing
}

fn section(out: &mut String, resolve: &Resolve, name: &str, interface: &Interface) {
    _ = write!(out, "\n## {name}\n\n{}\n", text(&interface.docs));
    let free = interface.functions.values();
    let free: Vec<_> = free.filter(|one| matches!(one.kind, FunctionKind::Freestanding)).collect();
    if !free.is_empty() {
        out.push_str("\n### Functions\n");
    }
    for function in free {
        _ = write!(out, "\n#### `{name}.{}`\n", function.name);
        described_function(out, resolve, function);
    }
    let own = interface.types.iter().filter(|(_, id)| !is_used(&resolve.types[**id]));
    let own: Vec<_> = own.collect();
    if !own.is_empty() {
        out.push_str("\n### Types\n");
    }
    for (type_name, id) in own {
        described_type(out, resolve, interface, type_name, *id);
    }
}

fn described_function(out: &mut String, resolve: &Resolve, function: &Function) {
    let params = function.params.iter().filter(|param| param.name != "self");
    let params = params.map(|param| format!("{}: {}", param.name, shown(resolve, &param.ty)));
    let params = params.collect::<Vec<_>>().join(", ");
    let result = match (&function.kind, &function.result) {
        (FunctionKind::Constructor(_), _) | (_, None) => String::new(),
        (_, Some(result)) => format!(" -> {}", shown(resolve, result)),
    };
    let prefix = match function.kind {
        FunctionKind::Static(_) => "static ",
        FunctionKind::Constructor(_) => "constructor ",
        _ => "",
    };
    let name = function.item_name();
    _ = write!(out, "\n```wit\n{prefix}{name}: func({params}){result}\n```\n");
    let docs = text(&function.docs);
    if !docs.is_empty() {
        _ = write!(out, "\n{docs}\n");
    }
}

fn described_type(
    out: &mut String,
    resolve: &Resolve,
    interface: &Interface,
    name: &str,
    id: TypeId,
) {
    let found = &resolve.types[id];
    _ = write!(out, "\n#### {} `{name}`\n\n{}\n", found.kind.as_str(), text(&found.docs));
    let item = |name: &str, ty: Option<&Type>, docs: &Docs| {
        let ty = ty.map(|ty| format!(": `{}`", shown(resolve, ty))).unwrap_or_default();
        let docs = text(docs).replace('\n', " ");
        let colon = if docs.is_empty() { "" } else { " — " };
        format!("\n- `{name}`{ty}{colon}{docs}")
    };
    let items: String = match &found.kind {
        TypeDefKind::Record(record) => {
            record.fields.iter().map(|one| item(&one.name, Some(&one.ty), &one.docs)).collect()
        }
        TypeDefKind::Variant(variant) => {
            variant.cases.iter().map(|one| item(&one.name, one.ty.as_ref(), &one.docs)).collect()
        }
        TypeDefKind::Enum(cases) => {
            cases.cases.iter().map(|one| item(&one.name, None, &one.docs)).collect()
        }
        _ => String::new(),
    };
    if !items.is_empty() {
        _ = writeln!(out, "{items}");
    }
    for function in interface.functions.values() {
        if function.kind.resource() == Some(id) {
            described_function(out, resolve, function);
        }
    }
}

/// Returns a type as WIT writes it.
fn shown(resolve: &Resolve, ty: &Type) -> String {
    let id = match ty {
        Type::Bool => return "bool".into(),
        Type::U8 => return "u8".into(),
        Type::U16 => return "u16".into(),
        Type::U32 => return "u32".into(),
        Type::U64 => return "u64".into(),
        Type::S8 => return "s8".into(),
        Type::S16 => return "s16".into(),
        Type::S32 => return "s32".into(),
        Type::S64 => return "s64".into(),
        Type::F32 => return "f32".into(),
        Type::F64 => return "f64".into(),
        Type::Char => return "char".into(),
        Type::String => return "string".into(),
        Type::ErrorContext => return "error-context".into(),
        Type::Id(id) => *id,
    };
    let found = &resolve.types[id];
    if let Some(name) = &found.name {
        return name.clone();
    }
    let or_none = |ty: &Option<Type>| ty.map_or("_".to_owned(), |ty| shown(resolve, &ty));
    match &found.kind {
        TypeDefKind::List(item) => format!("list<{}>", shown(resolve, item)),
        TypeDefKind::Option(item) => format!("option<{}>", shown(resolve, item)),
        TypeDefKind::Result(result) => {
            format!("result<{}, {}>", or_none(&result.ok), or_none(&result.err))
        }
        TypeDefKind::Tuple(tuple) => {
            let types = tuple.types.iter().map(|ty| shown(resolve, ty)).collect::<Vec<_>>();
            format!("tuple<{}>", types.join(", "))
        }
        TypeDefKind::Handle(Handle::Own(id)) => shown(resolve, &Type::Id(*id)),
        TypeDefKind::Handle(Handle::Borrow(id)) => {
            format!("borrow<{}>", shown(resolve, &Type::Id(*id)))
        }
        other => other.as_str().to_owned(),
    }
}

fn is_used(found: &TypeDef) -> bool {
    matches!(found.kind, TypeDefKind::Type(_))
}

fn text(docs: &Docs) -> &str {
    docs.contents.as_deref().unwrap_or_default().trim()
}
