#!/bin/sh
# install.sh install PREFIX ZSH_DIR BUILD "RUN PROGRAM" PROGRAM FILE...
# install.sh uninstall PREFIX
#
# Installs the program, its manual pages and completions, and each FILE below PREFIX/share/assay, at the
# path that it has here. What was installed is listed in PREFIX/share/assay/installed, and only what is
# listed there is ever removed: by uninstall, and after a newer version is installed. Folders are
# removed only if they are empty.
#
# It may be killed at any point: each file is written beside its place, under a name that follows from its own,
# and renamed. Meanwhile the list has the files of both versions.
set -eu
action=$1 prefix=$2
share=$prefix/share/assay
list=$share/installed

remove() { # the files that are read, and what was written beside them
    while IFS= read -r file; do
        case "/$file/" in
            *'/../'*) continue ;;
        esac
        rm -f "$prefix/$file" "$prefix/${file%/*}/.${file##*/}.new"
    done
}

if [ "$action" = uninstall ]; then
    [ ! -f "$list" ] && why="nothing to uninstall: there is no $list" || why=
    [ -n "$why" ] || remove < "$list"
    rm -f "$list" "$share/.installed.new"
    find "$share" -depth -type d -exec rmdir {} \; 2> /dev/null || true
    [ -z "$why" ] || printf '%s\n' "$why" >&2
    [ -z "$why" ]
    exit
fi

zsh=$3 build=$4 run=$5 program=$6
shift 6
mkdir -p "$share" "$build/man"
rm -f "$build"/man/*
$run --manuals "$build/man"
for shell in bash zsh fish; do
    $run --completion $shell > "$build/man/$shell"
done

place() { # FROM TO MODE
    mkdir -p "$prefix/${2%/*}"
    beside=$prefix/${2%/*}/.${2##*/}.new
    cp "$1" "$beside"
    chmod "$3" "$beside"
    mv -f "$beside" "$prefix/$2"
}

name() {
    printf '%s\n' "$2"
}

every() { # COMMAND FILE...: the command for each file that is installed
    command=$1
    shift
    for file; do
        $command "$file" "share/assay/$file" 644
    done
    for file in "$build"/man/*.1; do
        $command "$file" "share/man/man1/${file##*/}" 644
    done
    $command docs/assay-op.5 share/man/man5/assay-op.5 644
    $command "$build/man/bash" share/bash-completion/completions/assay 644
    $command "$build/man/zsh" "share/$zsh/_assay" 644
    $command "$build/man/fish" share/fish/vendor_completions.d/assay.fish 644
    $command "$program" bin/assay 755
}

every name "$@" > "$build/man/list"
touch "$list"
sort -u "$list" "$build/man/list" > "$share/.installed.new"
mv -f "$share/.installed.new" "$list"
every place "$@"
grep -vxFf "$build/man/list" "$list" | remove
place "$build/man/list" share/assay/installed 644
