#!/bin/sh
# install.sh install PREFIX ZSH_DIR BUILD "RUN PROGRAM" PROGRAM FILE...
# install.sh uninstall PREFIX
#
# Installs the program, its manual pages and completions, and each FILE below PREFIX/share/assay, at the
# path that it has here. What was installed is listed in PREFIX/share/assay/installed, and only what is
# listed there is ever removed: by uninstall, and before a newer version is installed. Folders are
# removed only if they are empty.
set -eu
action=$1 prefix=$2
list=$prefix/share/assay/installed

remove_listed() {
    [ -f "$list" ] || return 0
    while IFS= read -r file; do
        case "/$file/" in
            *'/../'*) continue ;;
        esac
        rm -f "$prefix/$file"
    done < "$list"
    rm -f "$list"
}

if [ "$action" = uninstall ]; then
    [ -f "$list" ] || {
        printf 'nothing to uninstall: there is no %s\n' "$list" >&2
        exit 1
    }
    remove_listed
    find "$prefix/share/assay" -depth -type d -exec rmdir {} \; 2> /dev/null || true
    exit 0
fi

zsh=$3 build=$4 run=$5 program=$6
shift 6
remove_listed
mkdir -p "$prefix/share/assay" "$build/man"

# Makes room for a file below PREFIX and lists it; the caller writes it.
place() {
    mkdir -p "$prefix/${1%/*}"
    printf '%s\n' "$1" >> "$list"
}

copy() { # FILE TO MODE
    place "$2"
    cp "$1" "$prefix/$2"
    chmod "$3" "$prefix/$2"
}

complete() { # SHELL TO
    place "share/$2"
    $run --completion "$1" > "$prefix/share/$2"
}

copy "$program" bin/assay 755
for file; do
    copy "$file" "share/assay/$file" 644
done
rm -f "$build"/man/*.1
$run --manuals "$build/man"
for file in "$build"/man/*.1; do
    copy "$file" "share/man/man1/${file##*/}" 644
done
copy docs/assay-op.5 share/man/man5/assay-op.5 644
complete bash bash-completion/completions/assay
complete zsh "$zsh/_assay"
complete fish fish/vendor_completions.d/assay.fish
